// The entry point of kernels that make images element by element. With half.wgsl and
// elements.wgsl. An invocation makes one word of the result: one element of f32, two of
// 16 bits. The kernel says what an element is (`made`) and where the result starts, in
// words (`result_start`); row[0].x are the elements of the result.

// Planes after planes, or channels last.
override CHANNELS_LAST: u32 = 0u;

@group(0) @binding(0) var<storage, read_write> result: array<u32>;

struct Place {
    image: u32,
    channel: u32,
    y: u32,
    x: u32,
}

fn place_of(index: u32, channels: u32, size: vec2<u32>) -> Place {
    let height = size.x;
    let width = size.y;
    if (CHANNELS_LAST == 1u) {
        let pixel = index / channels;
        let line = pixel / width;
        return Place(line / height, index % channels, line % height, pixel % width);
    }
    let line = index / width;
    let plane = line / height;
    return Place(plane / channels, plane % channels, line % height, index % width);
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let at = group_number(group) * 256u + lane;
    let elements = params.row[0].x;
    if (TYPE == 0u) {
        if (at < elements) {
            result[result_start() + at] = bitcast<u32>(made(at));
        }
        return;
    }
    let index = 2u * at;
    if (index >= elements) {
        return;
    }
    let first = made(index);
    var second = 0.0;
    if (index + 1u < elements) {
        second = made(index + 1u);
    }
    result[result_start() + at] = pair(first, second);
}
