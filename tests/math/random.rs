//! Philox on the CPU, with 64-bit integers.

/// What `SEED` and `INDEX` stand for in the calls of `cases.rs`.
pub const SEED: &str = "vec2<u32>(a, a * 2654435761u)";
pub const INDEX: &str = "vec2<u32>(b, b >> 7u)";

/// A half of the integer, by the last bit of `a`; bounds of any size and order.
pub const INTEGER_CALL: &str = "c10_metal_randint64(SEED, INDEX, vec2<u32>(b, 0u - (b & 1u)), \
     vec2<u32>(a, (a >> (b & 31u)) & 0x7fffffffu))[a & 1u]";

fn seed(a: u32) -> u64 {
    u64::from(a.wrapping_mul(2_654_435_761)) << 32 | u64::from(a)
}

fn index(b: u32) -> u64 {
    u64::from(b >> 7) << 32 | u64::from(b)
}

fn words(seed: u64, index: u64) -> [u32; 4] {
    let mut counter = [0, 0, (index >> 32) as u32, index as u32];
    let mut key = [(seed >> 32) as u32, seed as u32];
    for _ in 0..9 {
        let first = 0xd251_1f53_u64 * u64::from(counter[0]);
        let second = 0xcd9e_8d57_u64 * u64::from(counter[2]);
        counter = [
            (second >> 32) as u32 ^ counter[1] ^ key[0],
            second as u32,
            (first >> 32) as u32 ^ counter[3] ^ key[1],
            first as u32,
        ];
        key = [key[0].wrapping_add(0x9e37_79b9), key[1].wrapping_add(0xbb67_ae85)];
    }
    counter
}

fn unit(word: u32) -> f32 {
    (word & 0x7fff_ffff) as f32 * 4.656_612_7e-10
}

pub fn word(a: u32, b: u32) -> u32 {
    words(seed(a), index(b))[(b & 3) as usize]
}

pub fn uniform(a: u32, b: u32) -> f64 {
    f64::from(unit(words(seed(a), index(b))[0]))
}

pub fn normal(a: u32, b: u32) -> f64 {
    let words = words(seed(a), index(b));
    let (u1, u2) = (f64::from(1.0 - unit(words[0])), f64::from(1.0 - unit(words[1])));
    (-2.0 * u1.ln()).sqrt() * (2.0 * std::f64::consts::PI * u2).cos()
}

pub fn integer_word(a: u32, b: u32) -> u32 {
    let low = (u64::from(0u32.wrapping_sub(b & 1)) << 32 | u64::from(b)).cast_signed();
    let high = (u64::from((a >> (b & 31)) & 0x7fff_ffff) << 32 | u64::from(a)).cast_signed();
    let span = high.wrapping_sub(low) as f32;
    let value = low.wrapping_add((unit(words(seed(a), index(b))[0]) * span) as i64);
    (value.cast_unsigned() >> (32 * (a & 1))) as u32
}
