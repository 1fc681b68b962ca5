// A row of x times a matrix of 4-bit weights, where subgroups add up and a product of four
// bytes is one instruction. With f32 weights the arithmetic takes longer than reading them;
// so x becomes whole numbers of 23 bits, three digits of a byte, a power of two apart for
// each chunk, and a chunk is summed without any rounding. A digit's step is 2^-22 of the
// largest x of its chunk, as in a sum of f32 that holds that one.
//
// LANES invocations, a team, share a row of w, a chunk each, and keep their x in registers
// while they go through the rows of their team. A large device has one workgroup at a time
// on each of its processors, whatever workgroup memory is left.
//
// Parameters as in quantized_common.wgsl, and in row 3: experts, rows a team, workgroups a
// row of x.

// A power of two, as are the invocations of a subgroup, which it is a multiple of.
override LANES: u32 = 128u;
override THREADS: u32 = 512u;
// Whether rows have an even number of groups: a lane's scales are the same halves of words
// in all of them.
override EVEN: u32 = 0u;

// x of the chunks: the digits of the elements with even numbers, four in a word, a word for
// every eight elements; those with odd numbers; and so for each digit, LANES apart.
var<workgroup> tile: array<vec4<u32>, LANES * 6u>;
// The lowest digit's step, and the sum of x.
var<workgroup> scaled: array<vec2<f32>, LANES>;
// The sum over each subgroup for each row, those of a row after each other.
var<workgroup> slots: array<f32, 768>;

// A chunk of a row: its words, and those that its scale and offset lie in.
struct Chunk {
    words: vec4<u32>,
    scale: u32,
    offset: u32,
}

// A chunk of four rows.
struct Batch {
    a: Chunk,
    b: Chunk,
    c: Chunk,
    d: Chunk,
}

// Rows past the last one are read as whatever lies there, and not stored.
fn chunk_of(row: u32, chunk: u32) -> Chunk {
    let part = row * params.row[0].z + (chunk >> params.row[0].w);
    return Chunk(
        w[params.row[1].y + row * params.row[0].y + chunk],
        scales[word_of(params.row[1].w + part)],
        offsets[word_of(params.row[2].x + part)],
    );
}

fn batch_of(row: u32, chunk: u32) -> Batch {
    return Batch(
        chunk_of(row, chunk),
        chunk_of(row + 1u, chunk),
        chunk_of(row + 2u, chunk),
        chunk_of(row + 3u, chunk),
    );
}

struct Digits {
    even0: vec4<u32>,
    odd0: vec4<u32>,
    even1: vec4<u32>,
    odd1: vec4<u32>,
    even2: vec4<u32>,
    odd2: vec4<u32>,
    step: f32,
    sum: f32,
}

fn dots(low: vec4<u32>, high: vec4<u32>, even: vec4<u32>, odd: vec4<u32>) -> i32 {
    var sum = dot4I8Packed(low.x, even.x);
    sum += dot4I8Packed(high.x, odd.x);
    sum += dot4I8Packed(low.y, even.y);
    sum += dot4I8Packed(high.y, odd.y);
    sum += dot4I8Packed(low.z, even.z);
    sum += dot4I8Packed(high.z, odd.z);
    sum += dot4I8Packed(low.w, even.w);
    sum += dot4I8Packed(high.w, odd.w);
    return sum;
}

fn product(x: Digits, row: u32, chunk: u32, y: Chunk) -> f32 {
    let group = chunk >> params.row[0].w;
    let place = select(row * params.row[0].z + group, group, EVEN == 1u);
    let scale = element(y.scale, params.row[1].w + place);
    let offset = element(y.offset, params.row[2].x + place);
    let low = y.words & vec4<u32>(0x0f0f0f0fu);
    let high = (y.words >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu);
    // Below 2^31: 32 times 15 times 2^22.
    let whole = dots(low, high, x.even0, x.odd0) + dots(low, high, x.even1, x.odd1) * 256
        + dots(low, high, x.even2, x.odd2) * 65536;
    return (scale * x.step) * f32(whole) + offset * x.sum;
}

fn products(x: Digits, row: u32, chunk: u32, y: Batch) -> vec4<f32> {
    return vec4<f32>(
        product(x, row, chunk, y.a),
        product(x, row + 1u, chunk, y.b),
        product(x, row + 2u, chunk, y.c),
        product(x, row + 3u, chunk, y.d),
    );
}

// Adds the lanes' sums of four rows, of which the first has its subgroup's slot at `at`.
fn keep(first_block: bool, first_lane: bool, at: u32, stride: u32, sums: vec4<f32>) {
    var total = subgroupAdd(sums);
    if (first_lane) {
        if (!first_block) {
            total += vec4<f32>(
                slots[at],
                slots[at + stride],
                slots[at + 2u * stride],
                slots[at + 3u * stride],
            );
        }
        slots[at] = total.x;
        slots[at + stride] = total.y;
        slots[at + 2u * stride] = total.z;
        slots[at + 3u * stride] = total.w;
    }
}

struct Eight {
    low: vec4<f32>,
    high: vec4<f32>,
}

fn eight_of_x(x_row: u32, i: u32) -> Eight {
    let eights = params.row[0].y * 4u;
    let at = x_row * eights + min(i, eights - 1u);
    if (TYPE == 0u) {
        let words = params.row[1].z + 2u * at;
        return Eight(bitcast<vec4<f32>>(x[words]), bitcast<vec4<f32>>(x[words + 1u]));
    }
    let words = x[params.row[1].z + at];
    return Eight(four_of(words.xy), four_of(words.zw));
}

fn largest(values: vec4<f32>) -> u32 {
    let bits = bitcast<vec4<u32>>(values) & vec4<u32>(0x7fffffffu);
    return max(max(bits.x, bits.y), max(bits.z, bits.w));
}

// The nearest whole numbers, of less than 2^22, as bytes with signs of their own.
fn digits_of(values: vec4<f32>) -> vec4<u32> {
    // The significand of 1.5 2^23 and a whole number is that number's bits.
    let whole = bitcast<vec4<u32>>(values + vec4<f32>(12582912.0)) - vec4<u32>(0x4b400000u);
    return (whole + vec4<u32>(0x808080u)) ^ vec4<u32>(0x808080u);
}

// The lowest bytes of four words as one, the second ones, and the third ones.
fn planes_of(words: vec4<u32>) -> vec3<u32> {
    let ends = vec2<u32>(0xff00ffu);
    let outer = (words.xz & ends) | ((words.yw & ends) << vec2<u32>(8u));
    let inner = ((words.xz >> vec2<u32>(8u)) & vec2<u32>(0xffu))
        | (words.yw & vec2<u32>(0xff00u));
    return vec3<u32>(
        (outer.x & 0xffffu) | (outer.y << 16u),
        inner.x | (inner.y << 16u),
        (outer.x >> 16u) | (outer.y & 0xffff0000u),
    );
}

// Writes eight elements as digits. Four neighbours have a chunk's.
fn stage(i: u32, eight: Eight) {
    var most = max(largest(eight.low), largest(eight.high));
    most = max(most, subgroupShuffleXor(most, 1u));
    most = max(most, subgroupShuffleXor(most, 2u));
    var sum = dot(eight.low + eight.high, vec4<f32>(1.0));
    sum += subgroupShuffleXor(sum, 1u);
    sum += subgroupShuffleXor(sum, 2u);
    // Elements below 2^(exponent - 126) become whole numbers below 2^22. What is below
    // 2^-126 of them is nothing.
    let exponent = clamp(most >> 23u, 22u, 254u);
    let by = bitcast<f32>((275u - exponent) << 23u);
    let low = digits_of(eight.low * by);
    let high = digits_of(eight.high * by);
    let even = vec4<u32>(low.xz, high.xz);
    let odd = vec4<u32>(low.yw, high.yw);
    let chunk = i / 4u;
    let word = i % 4u;
    let evens = planes_of(even);
    let odds = planes_of(odd);
    tile[chunk][word] = evens.x;
    tile[chunk + LANES][word] = odds.x;
    tile[chunk + 2u * LANES][word] = evens.y;
    tile[chunk + 3u * LANES][word] = odds.y;
    tile[chunk + 4u * LANES][word] = evens.z;
    tile[chunk + 5u * LANES][word] = odds.z;
    if (word == 0u) {
        // Not a number where one of the elements is none, or infinite.
        let step = select((exponent - 21u) << 23u, 0x7fc00000u, most >= 0x7f800000u);
        scaled[chunk] = vec2<f32>(bitcast<f32>(step), sum);
    }
}

// The sum of a row's slots; not a number for the product with a matrix that is not there.
fn row_sum(matrix: u32, first: u32, count: u32) -> f32 {
    var sum = 0.0;
    for (var i = 0u; i < count; i += 1u) {
        sum += slots[first + i];
    }
    return select(sum, bitcast<f32>(0x7fc00000u | matrix), matrix == 0xffffffffu);
}

@compute @workgroup_size(THREADS)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(subgroup_id) subgroup: u32,
    @builtin(subgroup_size) subgroup_size: u32,
    @builtin(subgroup_invocation_id) of_subgroup: u32,
) {
    // Lanes of a subgroup have to be neighbours, however the device counts invocations.
    let thread = subgroup * subgroup_size + of_subgroup;
    let subgroups = LANES / subgroup_size;
    let n = params.row[0].x;
    let chunks = params.row[0].y;
    let count = params.row[3].y;
    let blocks = params.row[3].z;
    let teams = THREADS / LANES;
    let number = group_number(group);
    let x_row = min(number / blocks, params.row[2].y - 1u);
    let first = (number % blocks) * teams * count;
    let matrix = matrix_of(x_row);
    let lane = thread % LANES;
    let team = thread / LANES;
    let own = select(matrix * n, 0u, matrix == 0xffffffffu) + first + team * count;
    let slot = team * count * subgroups + lane / subgroup_size;
    let first_lane = of_subgroup == 0u;

    for (var base = 0u; base < chunks; base += LANES) {
        // Past the last chunk that one is read again, and its product not used.
        let chunk = min(base + lane, chunks - 1u);
        let there = base + lane < chunks;
        let x0 = eight_of_x(x_row, base * 4u + thread);
        var x1: Eight;
        if (LANES * 4u > THREADS) {
            x1 = eight_of_x(x_row, base * 4u + thread + THREADS);
        }
        var y = batch_of(own, chunk);
        workgroupBarrier();
        if (thread < LANES * 4u) {
            stage(thread, x0);
        }
        if (LANES * 4u > THREADS) {
            stage(thread + THREADS, x1);
        }
        workgroupBarrier();
        let step = scaled[lane];
        let digits = Digits(
            tile[lane],
            tile[lane + LANES],
            tile[lane + 2u * LANES],
            tile[lane + 3u * LANES],
            tile[lane + 4u * LANES],
            tile[lane + 5u * LANES],
            step.x,
            step.y,
        );
        for (var r = 0u; r < count; r += 4u) {
            // The weights of the next rows are under way while these are summed.
            let z = y;
            if (r + 4u < count) {
                y = batch_of(own + r + 4u, chunk);
            }
            let sums = select(vec4<f32>(), products(digits, own + r, chunk, z), there);
            keep(base == 0u, first_lane, slot + r * subgroups, subgroups, sums);
        }
    }
    workgroupBarrier();
    let size = select(2u, 1u, TYPE == 0u);
    for (var i = thread * size; i < teams * count; i += THREADS * size) {
        let row = first + i;
        if (row < n && number / blocks < params.row[2].y) {
            let at = x_row * params.row[2].z + row;
            let sum = row_sum(matrix, i * subgroups, subgroups);
            if (TYPE == 0u) {
                out[params.row[1].x + at] = bitcast<u32>(sum);
            } else {
                let other = row_sum(matrix, (i + 1u) * subgroups, subgroups);
                out[params.row[1].x + (at >> 1u)] = pair(sum, other);
            }
        }
    }
}
