// Sums of 64-bit integers, low word first. With scan.wgsl.
alias Sum = vec2<u32>;

fn plus(a: Sum, b: Sum) -> Sum {
    let low = a.x + b.x;
    return vec2<u32>(low, a.y + b.y + select(0u, 1u, low < a.x));
}

fn load(index: u32) -> Sum {
    let at = params.row[0].w + 2u * index;
    return vec2<u32>(source[at], source[at + 1u]);
}

fn store(index: u32, value: Sum) {
    let at = params.row[0].z + 2u * index;
    sums[at] = value.x;
    sums[at + 1u] = value.y;
}
