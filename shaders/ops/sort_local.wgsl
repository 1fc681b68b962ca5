// The part of a bitonic sort that stays within 1024 places: for each run length from
// `first` to `last`, all steps of 512 places and less. See sort_keys.wgsl for the planes.
//
// Parameters: row 0: places a row, places in all, first, last.

struct Params {
    row: array<vec4<u32>, 8>,
}

var<immediate> params: Params;

@group(0) @binding(0) var<storage, read_write> keys: array<u32>;

var<workgroup> high: array<u32, 1024>;
var<workgroup> low: array<u32, 1024>;
var<workgroup> place: array<u32, 1024>;

fn after(a: u32, b: u32) -> bool {
    if (high[a] != high[b]) {
        return high[a] > high[b];
    }
    if (low[a] != low[b]) {
        return low[a] > low[b];
    }
    return place[a] > place[b];
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let places = params.row[0].x;
    let total = params.row[0].y;
    let base = (group.x + group.y * 32768u) * 1024u;
    for (var i = lane; i < 1024u; i += 256u) {
        let at = base + i;
        if (at < total) {
            high[i] = keys[at];
            low[i] = keys[at + total];
            place[i] = keys[at + 2u * total];
        } else {
            high[i] = 0xffffffffu;
            low[i] = 0xffffffffu;
            place[i] = i;
        }
    }
    for (var run = params.row[0].z; run <= params.row[0].w; run *= 2u) {
        for (var distance = min(run / 2u, 512u); distance > 0u; distance >>= 1u) {
            workgroupBarrier();
            for (var i = lane; i < 512u; i += 256u) {
                let a = (i / distance) * 2u * distance + i % distance;
                let b = a + distance;
                let down = (((base + a) % places) & run) != 0u;
                if (after(a, b) != down) {
                    let h = high[a];
                    let l = low[a];
                    let p = place[a];
                    high[a] = high[b];
                    low[a] = low[b];
                    place[a] = place[b];
                    high[b] = h;
                    low[b] = l;
                    place[b] = p;
                }
            }
        }
    }
    workgroupBarrier();
    for (var i = lane; i < 1024u; i += 256u) {
        let at = base + i;
        if (at < total) {
            keys[at] = high[i];
            keys[at + total] = low[i];
            keys[at + 2u * total] = place[i];
        }
    }
}
