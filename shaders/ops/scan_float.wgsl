// Sums of f32. With scan.wgsl.
alias Sum = f32;

fn plus(a: Sum, b: Sum) -> Sum {
    return a + b;
}

fn load(index: u32) -> Sum {
    return bitcast<f32>(source[params.row[0].w + index]);
}

fn store(index: u32, value: Sum) {
    sums[params.row[0].z + index] = bitcast<u32>(value);
}
