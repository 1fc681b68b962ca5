// Sums of all elements up to each one, along rows: a workgroup a row, 1024 elements at a
// time, four an invocation.
//
// Parameters: row 0: rows, elements a row, where the sums and the source start (words).

struct Params {
    row: array<vec4<u32>, 8>,
}

var<immediate> params: Params;

@group(0) @binding(0) var<storage, read_write> sums: array<u32>;
@group(0) @binding(1) var<storage, read> source: array<u32>;

var<workgroup> totals: array<Sum, 512>;

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let row = group.x + group.y * 32768u;
    let length = params.row[0].y;
    let live = row < params.row[0].x;
    var carry = Sum();
    for (var base = 0u; base < length; base += 1024u) {
        var own: array<Sum, 4>;
        var sum = Sum();
        for (var i = 0u; i < 4u; i += 1u) {
            let at = base + 4u * lane + i;
            if (live && at < length) {
                sum = plus(sum, load(row * length + at));
            }
            own[i] = sum;
        }
        var side = 0u;
        totals[lane] = sum;
        for (var distance = 1u; distance < 256u; distance <<= 1u) {
            workgroupBarrier();
            var total = totals[side * 256u + lane];
            if (lane >= distance) {
                total = plus(totals[side * 256u + lane - distance], total);
            }
            side = 1u - side;
            totals[side * 256u + lane] = total;
        }
        workgroupBarrier();
        var before = carry;
        if (lane > 0u) {
            before = plus(carry, totals[side * 256u + lane - 1u]);
        }
        carry = plus(carry, totals[side * 256u + 255u]);
        workgroupBarrier();
        for (var i = 0u; i < 4u; i += 1u) {
            let at = base + 4u * lane + i;
            if (live && at < length) {
                store(row * length + at, plus(before, own[i]));
            }
        }
    }
}
