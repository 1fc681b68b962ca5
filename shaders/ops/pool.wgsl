// 2-D pooling of a dense plane after plane, or of channels-last images. With half.wgsl,
// elements.wgsl and image_words.wgsl.
//
// Parameters: row 0: elements of the result, channels, input height, input width; row 1:
// output height, output width, kernel height, kernel width; row 2: strides and paddings,
// vertical first; row 3: dilations, whether padding counts, what to divide by or 0;
// row 4: where the result (words), the indices (words) and the source (elements) start.

override AVERAGE: u32 = 0u;

@group(0) @binding(1) var<storage, read> source: array<u32>;
@group(0) @binding(2) var<storage, read_write> indices: array<u32>;

fn result_start() -> u32 {
    return params.row[4].x;
}

fn source_at(place: Place, y: u32, x: u32) -> f32 {
    let height = params.row[0].z;
    let width = params.row[0].w;
    let channels = params.row[0].y;
    var at = ((place.image * channels + place.channel) * height + y) * width + x;
    if (CHANNELS_LAST == 1u) {
        at = ((place.image * height + y) * width + x) * channels + place.channel;
    }
    at += params.row[4].z;
    return element(source[word_of(at)], at);
}

fn is_nan(value: f32) -> bool {
    return (bitcast<u32>(value) & 0x7fffffffu) > 0x7f800000u;
}

fn made(index: u32) -> f32 {
    let place = place_of(index, params.row[0].y, params.row[1].xy);
    let height = i32(params.row[0].z);
    let width = i32(params.row[0].w);
    let kernel = vec2<i32>(params.row[1].zw);
    let dilation = vec2<i32>(params.row[3].xy);
    let padding = vec2<i32>(params.row[2].zw);
    let start = vec2<i32>(vec2<u32>(place.y, place.x) * params.row[2].xy) - padding;
    var value = 0.0;
    var best = 0u;
    var found = false;
    for (var i = 0; i < kernel.x; i += 1) {
        let y = start.x + i * dilation.x;
        if (y < 0 || y >= height) {
            continue;
        }
        for (var j = 0; j < kernel.y; j += 1) {
            let x = start.y + j * dilation.y;
            if (x < 0 || x >= width) {
                continue;
            }
            let one = source_at(place, u32(y), u32(x));
            if (AVERAGE == 1u) {
                value += one;
            } else if (!found || is_nan(one) || one > value) {
                value = one;
                best = u32(y * width + x);
                found = true;
            }
        }
    }
    if (AVERAGE == 1u) {
        let limit = min(start + kernel, vec2<i32>(height, width) + padding);
        let inside = min(limit, vec2<i32>(height, width)) - max(start, vec2<i32>(0));
        var divisor = inside.x * inside.y;
        if (params.row[3].w != 0u) {
            divisor = bitcast<i32>(params.row[3].w);
        } else if (params.row[3].z == 1u) {
            divisor = (limit.x - start.x) * (limit.y - start.y);
        }
        if (inside.x <= 0 || inside.y <= 0) {
            return 0.0;
        }
        return value / f32(divisor);
    }
    indices[params.row[4].y + 2u * index] = best;
    indices[params.row[4].y + 2u * index + 1u] = 0u;
    return value;
}
