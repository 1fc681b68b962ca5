// 4-bit weights: a row of K is K / 32 chunks of four words, element k in bits 4 (k mod 8) of
// word k / 8; weight = nibble * scale + offset, one of each a group of chunks.
//
// Parameters: row 0: rows of w (N), chunks a row, groups a row, log2 of chunks a group;
// row 1: where out (words), w (chunks), x (fours of words) and the scales (elements) start;
// row 2: where the offsets start (elements), rows of x, elements a row of out, where the
// experts start (words); row 3: experts.

@group(0) @binding(0) var<storage, read_write> out: array<u32>;
@group(0) @binding(1) var<storage, read> w: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> x: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> scales: array<u32>;
@group(0) @binding(4) var<storage, read> offsets: array<u32>;

// The four elements of two words.
fn four_of(words: vec2<u32>) -> vec4<f32> {
    return vec4<f32>(
        widened(words.x & 0xffffu),
        widened(words.x >> 16u),
        widened(words.y & 0xffffu),
        widened(words.y >> 16u),
    );
}

// Four elements of x, from a multiple of four on.
fn four_of_x(index: u32) -> vec4<f32> {
    let start = params.row[1].z;
    if (TYPE == 0u) {
        return bitcast<vec4<f32>>(x[start + (index >> 2u)]);
    }
    let words = x[start + (index >> 3u)];
    return four_of(select(words.xy, words.zw, (index & 4u) == 4u));
}

// The four low nibbles of a word times 1, 16, 256 and 4096: each is or-ed into the
// significand of 2^23, without a shift or an integer conversion.
fn low_nibbles(word: u32) -> vec4<f32> {
    let bits = (vec4<u32>(word) & vec4<u32>(0xfu, 0xf0u, 0xf00u, 0xf000u))
        | vec4<u32>(0x4b000000u);
    return bitcast<vec4<f32>>(bits) - vec4<f32>(8388608.0);
}

fn scale_of(group: u32) -> f32 {
    let at = params.row[1].w + group;
    return element(scales[word_of(at)], at);
}

fn offset_of(group: u32) -> f32 {
    let at = params.row[2].x + group;
    return element(offsets[word_of(at)], at);
}
