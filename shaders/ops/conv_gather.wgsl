// A convolution as a product: of the weights, a row for each output channel of a group,
// and of the input, a column for each output place, whose elements are gathered as they
// are used. With matmul_common.wgsl, matmul_tile.wgsl, conv_window.wgsl, and conv_rows.wgsl
// or conv_columns.wgsl, which say which operand is which.
//
// row[1]  weights: offset, stride of group; input: offset, stride of group
// row[2]  input: strides of image, channel, y, x
// row[3]  input's height and width; output's width; output places an image
//
// The other rows are those of matmul_common.wgsl; the outer index of the batch is an
// image, to which the output's number adds more, and the inner one a group.

// The order along the depth. 0: channel, y, x. 1: y, x, channel, where four channels from
// a multiple of four are one aligned vector.
override CHANNELS_INNER: u32 = 0u;
// Whether four weights from a multiple of four along the depth are one.
override WEIGHT_QUADS: u32 = 0u;

struct Output {
    // Of the image's and group's first element.
    start: u32,
    window: vec2<i32>,
    exists: bool,
}

fn output_of(z: Batch, number: u32, outputs: u32) -> Output {
    let width = params.row[3].z;
    let places = params.row[3].w;
    let image = z.outer + number / places;
    let place = number % places;
    let start = params.row[1].z + z.inner * params.row[1].w + image * params.row[2].x;
    return Output(start, window_of(place / width, place % width), number < outputs);
}

// Four elements along the depth. Of a step, neighbours in the workgroup take neighbours in
// memory: outputs, or the channels of one.
fn output_lane(i: u32) -> Lane {
    if (CHANNELS_INNER == 1u) {
        return lane_of(1u, i);
    }
    return Lane(i % TILE, (i / TILE) * 4u);
}

fn gathered(at: Output, k: u32, k_end: u32) -> vec4<f32> {
    const NONE = vec4<f32>();
    let taps = KERNEL_HEIGHT * KERNEL_WIDTH;
    let height = params.row[3].x;
    let width = params.row[3].y;
    let strides = params.row[2].yzw;
    var four = NONE;
    if (!at.exists) {
        return NONE;
    }
    if (CHANNELS_INNER == 1u) {
        let channels = params.row[0].z / taps;
        let tap = k / channels;
        let source = source_of(at.window, tap / KERNEL_WIDTH, tap % KERNEL_WIDTH, height, width);
        if (k < k_end && source.inside) {
            four = input_quad(at.start + source.y * strides.y + source.x * strides.z
                + (k - tap * channels));
        }
        return four;
    }
    for (var j = 0u; j < 4u; j += 1u) {
        let channel = (k + j) / taps;
        let tap = (k + j) % taps;
        let source = source_of(at.window, tap / KERNEL_WIDTH, tap % KERNEL_WIDTH, height, width);
        if (k + j < k_end && source.inside) {
            four[j] = input_at(at.start + channel * strides.x + source.y * strides.y
                + source.x * strides.z);
        }
    }
    return four;
}

struct Channel {
    start: u32,
    exists: bool,
}

fn channel_of(z: Batch, channel: u32, channels: u32) -> Channel {
    let start = params.row[1].x + z.inner * params.row[1].y + channel * params.row[0].z;
    return Channel(start, channel < channels);
}

fn weights_of(at: Channel, k: u32, k_end: u32) -> vec4<f32> {
    var four = vec4<f32>();
    if (!at.exists) {
        return four;
    }
    if (WEIGHT_QUADS == 1u) {
        if (k < k_end) {
            four = weight_quad(at.start + k);
        }
        return four;
    }
    for (var j = 0u; j < 4u; j += 1u) {
        if (k + j < k_end) {
            four[j] = weight_at(at.start + k + j);
        }
    }
    return four;
}
