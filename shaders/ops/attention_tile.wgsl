// Attention for many queries: a workgroup makes 64 rows by COLUMNS columns of the result,
// going through the keys 64 at a time. Of these it makes the scores, 8 rows by 4 keys an
// invocation, turns them into weights on the greatest score so far, and adds up weight by
// value, 8 rows by 8 columns (4 where COLUMNS is 64) an invocation. The scores are in
// registers alone; both products go through workgroup memory 8 steps at a time, with the
// next step's vectors on their way. With attention_common.wgsl.

override COLUMNS: u32 = 128u;

const ROWS: u32 = 64u;
const KEYS: u32 = 64u;

// The rows' side of a product: two steps of 8 by 64 rows. Between the products the
// invocations' parts of each row's maximum or sum, 16 a row.
var<workgroup> left: array<vec4<f32>, 256>;
// The other side: two steps of 8 by 64 keys or COLUMNS columns.
var<workgroup> right: array<vec4<f32>, 512>;
// Two halves of each row's maximum or sum.
var<workgroup> halves: array<vec4<f32>, 32>;

// Where the vector of rows 4 * quad and on lies. Steps are shifted against each other, so
// that writing along the depth meets different banks.
fn side_index(d: u32, quad: u32) -> u32 {
    return d * 16u + (quad ^ (d & 4u));
}

// An invocation's four elements along the depth, d of row `at` and on.
fn keep_left(buffer: u32, at: u32, d: u32, four: vec4<f32>) {
    let c = at & 3u;
    let quad = at >> 2u;
    left[buffer + side_index(d, quad)][c] = four.x;
    left[buffer + side_index(d + 1u, quad)][c] = four.y;
    left[buffer + side_index(d + 2u, quad)][c] = four.z;
    left[buffer + side_index(d + 3u, quad)][c] = four.w;
}

fn keep_right(buffer: u32, at: u32, d: u32, four: vec4<f32>) {
    let c = at & 3u;
    let quad = at >> 2u;
    right[buffer + side_index(d, quad)][c] = four.x;
    right[buffer + side_index(d + 1u, quad)][c] = four.y;
    right[buffer + side_index(d + 2u, quad)][c] = four.z;
    right[buffer + side_index(d + 3u, quad)][c] = four.w;
}

struct Rows {
    low: vec4<f32>,
    high: vec4<f32>,
}

// Where an invocation's part of four rows lies among the 16 of each row.
fn part_index(x: u32, quad: u32) -> u32 {
    return x * 16u + (quad ^ x);
}

fn keep_parts(x: u32, y: u32, parts: Rows) {
    left[part_index(x, y)] = parts.low;
    left[part_index(x, y + 8u)] = parts.high;
    workgroupBarrier();
}

// The greatest of each row's parts.
fn greatest(i: u32, x: u32, y: u32, parts: Rows) -> Rows {
    keep_parts(x, y, parts);
    let quad = (i % ROWS) >> 2u;
    let first = (i / ROWS) * 8u;
    var value = left[part_index(first, quad)][i & 3u];
    for (var j = 1u; j < 8u; j += 1u) {
        value = max(value, left[part_index(first + j, quad)][i & 3u]);
    }
    halves[i >> 2u][i & 3u] = value;
    workgroupBarrier();
    return Rows(max(halves[y], halves[y + 16u]), max(halves[y + 8u], halves[y + 24u]));
}

// The sum of each row's parts.
fn total(i: u32, x: u32, y: u32, parts: Rows) -> Rows {
    keep_parts(x, y, parts);
    let quad = (i % ROWS) >> 2u;
    let first = (i / ROWS) * 8u;
    var value = left[part_index(first, quad)][i & 3u];
    for (var j = 1u; j < 8u; j += 1u) {
        value += left[part_index(first + j, quad)][i & 3u];
    }
    halves[i >> 2u][i & 3u] = value;
    workgroupBarrier();
    return Rows(halves[y] + halves[y + 16u], halves[y + 8u] + halves[y + 24u]);
}

// Of four rows: the query's number and where its mask starts.
struct Queries {
    number: vec4<u32>,
    mask: vec4<u32>,
}

fn queries_of(z: Matrix, row: u32) -> Queries {
    // A row beyond the last one reads that one's mask.
    let row_of = min(vec4<u32>(row, row + 1u, row + 2u, row + 3u), vec4<u32>(rows() - 1u));
    return Queries(
        row_of % queries(),
        vec4<u32>(
            mask_start(z, row_of.x), mask_start(z, row_of.y),
            mask_start(z, row_of.z), mask_start(z, row_of.w),
        ),
    );
}

fn seen(at: Queries, key: u32, key_end: u32) -> vec4<bool> {
    if (CAUSAL == 1u) {
        return (at.number >= vec4<u32>(key)) & vec4<bool>(key < key_end);
    }
    return vec4<bool>(key < key_end);
}

// The scores of four rows for a key.
fn scores(products: vec4<f32>, at: Queries, key: u32, key_end: u32) -> vec4<f32> {
    var score = scale() * products;
    if (key < key_end) {
        score += vec4<f32>(
            mask_at(at.mask.x, key), mask_at(at.mask.y, key),
            mask_at(at.mask.z, key), mask_at(at.mask.w, key),
        );
    }
    return select(vec4<f32>(LOWEST), score, seen(at, key, key_end));
}

fn weights(score: vec4<f32>, most: vec4<f32>, at: Queries, key: u32, key_end: u32) -> vec4<f32> {
    return select(vec4<f32>(), exp(score - most), seen(at, key, key_end));
}

fn store_row(first: u32, row: u32, column: u32, low: vec4<f32>, high: vec4<f32>, divisor: f32) {
    if (row >= rows()) {
        return;
    }
    var factor = 1.0;
    if (PARTS == 0u) {
        factor = share(divisor);
    }
    if (column < columns()) {
        store(first + row, column, low * factor);
    }
    if (COLUMNS == 128u && column + 64u < columns()) {
        store(first + row, column + 64u, high * factor);
    }
}

fn store_state(first: u32, row: u32, most: f32, sum: f32) {
    if (row < rows()) {
        store(first + row, pitch() - 4u, vec4<f32>(most, sum, 0.0, 0.0));
    }
}

@compute @workgroup_size(128)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) i: u32,
) {
    let number = group_number(group);
    let used = params.row[7].y;
    if (number >= used) {
        return;
    }
    let row_tiles = (rows() + ROWS - 1u) / ROWS;
    let column_tiles = (columns() + COLUMNS - 1u) / COLUMNS;
    let column = (number % column_tiles) * COLUMNS;
    let rest = number / column_tiles;
    var row_tile = rest % row_tiles;
    var part = rest / row_tiles;
    if (CAUSAL == 1u) {
        // The last rows see the most keys: those first.
        let parts = used / (column_tiles * row_tiles);
        row_tile = row_tiles - 1u - rest / parts;
        part = rest % parts;
    }
    let split = part % splits();
    let z_number = part / splits();
    let z = matrix_of(z_number);
    let row = row_tile * ROWS;
    let first_key = split * params.row[7].x;
    let key_end = min(first_key + params.row[7].x, seen_by(row, min(row + ROWS, rows())));

    // 32 invocations that follow each other make a block of 8 x 4 vectors, so that they
    // read few different ones.
    let x = ((i / 32u) % 2u) * 8u + i % 8u;
    let y = (i / 64u) * 4u + (i % 32u) / 8u;
    // Rows 4y and on, and 32 further on.
    let low = queries_of(z, row + 4u * y);
    let high = queries_of(z, row + 4u * y + 32u);

    // What an invocation fetches: four along the depth of a row and of a key, and one or
    // two vectors of values.
    let at = i / 2u;
    let at_d = (i % 2u) * 4u;
    let q_inside = row + at < rows();
    let q_from = q_start(z, min(row + at, rows() - 1u));
    let k_from = k_start(z) + at * params.row[3].x;
    let v_at = i / (COLUMNS / 4u);
    let v_quad = i % (COLUMNS / 4u);
    let v_column = column + v_quad * 4u;
    let v_from = v_start(z) + v_at * params.row[4].y;
    // Four keys on: the second vector of 128 columns.
    let v_step = 4u * params.row[4].y;

    // o<row><half of the columns>: rows 0..3 at 4y, 4..7 at 32 + 4y.
    var o00 = vec4<f32>(); var o01 = vec4<f32>();
    var o10 = vec4<f32>(); var o11 = vec4<f32>();
    var o20 = vec4<f32>(); var o21 = vec4<f32>();
    var o30 = vec4<f32>(); var o31 = vec4<f32>();
    var o40 = vec4<f32>(); var o41 = vec4<f32>();
    var o50 = vec4<f32>(); var o51 = vec4<f32>();
    var o60 = vec4<f32>(); var o61 = vec4<f32>();
    var o70 = vec4<f32>(); var o71 = vec4<f32>();
    var most = Rows(vec4<f32>(LOWEST), vec4<f32>(LOWEST));
    var sums = Rows(vec4<f32>(), vec4<f32>());

    var next_q = q_four(q_from, at_d, q_inside);
    var next_k = k_four(k_from + first_key * params.row[3].x, at_d, first_key + at < key_end);
    for (var key = first_key; key < key_end; key += KEYS) {
        var next_v = vec4<f32>();
        var next_w = vec4<f32>();
        let k_key = k_from + key * params.row[3].x;
        let v_key = v_from + key * params.row[4].y;

        // s<key><half of the rows>.
        var s00 = vec4<f32>(); var s01 = vec4<f32>();
        var s10 = vec4<f32>(); var s11 = vec4<f32>();
        var s20 = vec4<f32>(); var s21 = vec4<f32>();
        var s30 = vec4<f32>(); var s31 = vec4<f32>();
        for (var d = 0u; d < depth(); d += 8u) {
            // The other half of each side is still read by those that come later.
            let side = (d & 8u) * 16u;
            keep_left(side, at, at_d, next_q);
            keep_right(side, at, at_d, next_k);
            workgroupBarrier();
            let next = d + 8u;
            if (next < depth()) {
                next_q = q_four(q_from, next + at_d, q_inside);
                next_k = k_four(k_key, next + at_d, key + at < key_end);
            } else {
                next_v = v_four(v_key, v_column, key + v_at < key_end);
                if (COLUMNS == 128u) {
                    next_w = v_four(v_key + v_step, v_column, key + v_at + 4u < key_end);
                }
            }
            for (var j = 0u; j < 8u; j += 1u) {
                let a = left[side + side_index(j, y)];
                let b = left[side + side_index(j, y + 8u)];
                let c = right[side + side_index(j, x)];
                s00 += c.x * a;
                s01 += c.x * b;
                s10 += c.y * a;
                s11 += c.y * b;
                s20 += c.z * a;
                s21 += c.z * b;
                s30 += c.w * a;
                s31 += c.w * b;
            }
        }
        workgroupBarrier();

        let own = key + 4u * x;
        s00 = scores(s00, low, own, key_end);
        s01 = scores(s01, high, own, key_end);
        s10 = scores(s10, low, own + 1u, key_end);
        s11 = scores(s11, high, own + 1u, key_end);
        s20 = scores(s20, low, own + 2u, key_end);
        s21 = scores(s21, high, own + 2u, key_end);
        s30 = scores(s30, low, own + 3u, key_end);
        s31 = scores(s31, high, own + 3u, key_end);
        let found = greatest(i, x, y, Rows(
            max(max(s00, s10), max(s20, s30)),
            max(max(s01, s11), max(s21, s31)),
        ));
        let now = Rows(max(most.low, found.low), max(most.high, found.high));
        let a = exp(most.low - now.low);
        let b = exp(most.high - now.high);
        most = now;
        s00 = weights(s00, now.low, low, own, key_end);
        s01 = weights(s01, now.high, high, own, key_end);
        s10 = weights(s10, now.low, low, own + 1u, key_end);
        s11 = weights(s11, now.high, high, own + 1u, key_end);
        s20 = weights(s20, now.low, low, own + 2u, key_end);
        s21 = weights(s21, now.high, high, own + 2u, key_end);
        s30 = weights(s30, now.low, low, own + 3u, key_end);
        s31 = weights(s31, now.high, high, own + 3u, key_end);
        sums.low = sums.low * a + ((s00 + s10) + (s20 + s30));
        sums.high = sums.high * b + ((s01 + s11) + (s21 + s31));
        o00 *= a.x; o10 *= a.y; o20 *= a.z; o30 *= a.w;
        o40 *= b.x; o50 *= b.y; o60 *= b.z; o70 *= b.w;
        if (COLUMNS == 128u) {
            o01 *= a.x; o11 *= a.y; o21 *= a.z; o31 *= a.w;
            o41 *= b.x; o51 *= b.y; o61 *= b.z; o71 *= b.w;
        }

        // Weight by value, 8 keys a step: the invocations that have a step's weights hand
        // them out.
        let steps = (min(key_end - key, KEYS) + 7u) / 8u;
        for (var step = 0u; step < steps; step += 1u) {
            let side = (step % 2u) * 128u;
            let values = (step % 2u) * 256u;
            if (x / 2u == step) {
                let d = side + (x % 2u) * 64u + y;
                left[d] = s00;
                left[d + 8u] = s01;
                left[d + 16u] = s10;
                left[d + 24u] = s11;
                left[d + 32u] = s20;
                left[d + 40u] = s21;
                left[d + 48u] = s30;
                left[d + 56u] = s31;
            }
            right[values + i] = next_v;
            if (COLUMNS == 128u) {
                right[values + i + 128u] = next_w;
            }
            workgroupBarrier();
            let next = key + (step + 1u) * 8u;
            if (step + 1u < steps) {
                let from_next = v_key + (step + 1u) * 8u * params.row[4].y;
                next_v = v_four(from_next, v_column, next + v_at < key_end);
                if (COLUMNS == 128u) {
                    next_w = v_four(from_next + v_step, v_column, next + v_at + 4u < key_end);
                }
            } else if (key + KEYS < key_end) {
                next_q = q_four(q_from, at_d, q_inside);
                next_k = k_four(k_key + KEYS * params.row[3].x, at_d, key + KEYS + at < key_end);
            }
            for (var j = 0u; j < 8u; j += 1u) {
                let p = left[side + j * 16u + y];
                let r = left[side + j * 16u + y + 8u];
                let s = right[values + j * (COLUMNS / 4u) + x];
                o00 += p.x * s;
                o10 += p.y * s;
                o20 += p.z * s;
                o30 += p.w * s;
                o40 += r.x * s;
                o50 += r.y * s;
                o60 += r.z * s;
                o70 += r.w * s;
                if (COLUMNS == 128u) {
                    let t = right[values + j * 32u + 16u + x];
                    o01 += p.x * t;
                    o11 += p.y * t;
                    o21 += p.z * t;
                    o31 += p.w * t;
                    o41 += r.x * t;
                    o51 += r.y * t;
                    o61 += r.z * t;
                    o71 += r.w * t;
                }
            }
        }
        workgroupBarrier();
    }

    let sum = total(i, x, y, sums);
    let n = column + 4u * x;
    let r = row + 4u * y;
    let first = (split * (used / (column_tiles * row_tiles * splits())) + z_number) * rows();
    store_row(first, r, n, o00, o01, sum.low.x);
    store_row(first, r + 1u, n, o10, o11, sum.low.y);
    store_row(first, r + 2u, n, o20, o21, sum.low.z);
    store_row(first, r + 3u, n, o30, o31, sum.low.w);
    store_row(first, r + 32u, n, o40, o41, sum.high.x);
    store_row(first, r + 33u, n, o50, o51, sum.high.y);
    store_row(first, r + 34u, n, o60, o61, sum.high.z);
    store_row(first, r + 35u, n, o70, o71, sum.high.w);
    if (PARTS == 1u && x == 0u && column == 0u) {
        store_state(first, r, most.low.x, sum.low.x);
        store_state(first, r + 1u, most.low.y, sum.low.y);
        store_state(first, r + 2u, most.low.z, sum.low.z);
        store_state(first, r + 3u, most.low.w, sum.low.w);
        store_state(first, r + 32u, most.high.x, sum.high.x);
        store_state(first, r + 33u, most.high.y, sum.high.y);
        store_state(first, r + 34u, most.high.z, sum.high.z);
        store_state(first, r + 35u, most.high.w, sum.high.w);
    }
}
