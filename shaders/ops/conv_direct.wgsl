// A convolution output by output, where a group has few output channels. With half.wgsl,
// elements.wgsl, image_words.wgsl and conv_window.wgsl.
//
// row[0]  elements of the result, output channels; output and input channels of a group
// row[1]  input's height and width, output's height and width
// row[2]  input: offset, strides of image, channel, y
// row[3]  input: stride of x; weights: offset, strides of group, output channel
// row[4]  weights: strides of channel, y, x; bias: offset
// row[5]  bias: stride; where the result starts, in words
//
// Other offsets and strides in elements.

override BIAS: u32 = 0u;

@group(0) @binding(1) var<storage, read> input: array<u32>;
@group(0) @binding(2) var<storage, read> weights: array<u32>;
@group(0) @binding(3) var<storage, read> bias: array<u32>;

fn result_start() -> u32 {
    return params.row[5].y;
}

fn made(index: u32) -> f32 {
    let place = place_of(index, params.row[0].y, params.row[1].zw);
    let window = window_of(place.y, place.x);
    let group = place.channel / params.row[0].z;
    let channels = params.row[0].w;
    let from_input = params.row[2].x + place.image * params.row[2].y
        + group * channels * params.row[2].z;
    let from_weights = params.row[3].y + group * params.row[3].z
        + (place.channel % params.row[0].z) * params.row[3].w;
    var sum = 0.0;
    // The taps are few and known to the compiler, which can keep where they lie.
    for (var channel = 0u; channel < channels; channel += 1u) {
        let in_channel = from_input + channel * params.row[2].z;
        let of_channel = from_weights + channel * params.row[4].x;
        for (var tap_y = 0u; tap_y < KERNEL_HEIGHT; tap_y += 1u) {
            for (var tap_x = 0u; tap_x < KERNEL_WIDTH; tap_x += 1u) {
                let source = source_of(window, tap_y, tap_x, params.row[1].x, params.row[1].y);
                if (source.inside) {
                    let i = in_channel + source.y * params.row[2].w + source.x * params.row[3].x;
                    let w = of_channel + tap_y * params.row[4].y + tap_x * params.row[4].z;
                    sum += element(input[word_of(i)], i) * element(weights[word_of(w)], w);
                }
            }
        }
    }
    if (BIAS == 1u) {
        let i = params.row[4].w + place.channel * params.row[5].x;
        sum += element(bias[word_of(i)], i);
    }
    return sum;
}
