//! The values that functions are tried at.

/// A small generator (Steele and Vigna's splitmix64), so that a failure repeats.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub fn between(&mut self, low: f64, high: f64) -> f32 {
        (low + (high - low) * self.unit()) as f32
    }

    /// Any finite value, every exponent as likely as another.
    pub fn any(&mut self) -> f32 {
        loop {
            let x = f32::from_bits(self.next() as u32);
            if x.is_finite() {
                return x;
            }
        }
    }
}

/// Zeros, infinities, NaN, denormals, the ends of the range, integers, halves, and their neighbours.
pub fn edges() -> Vec<f32> {
    let mut values = vec![0.0, f32::INFINITY, f32::NAN, f32::MAX, f32::MIN_POSITIVE];
    values.extend([1, 2, 3, 0x0040_0000, 0x007f_ffff].map(f32::from_bits));
    values.extend((-30..31).map(|e| 2f32.powi(e)));
    values.extend((1..41).map(|i| i as f32 * 0.5));
    values.extend([
        88.0, 88.72, 88.73, 89.0, 103.9, 104.0, 127.0, 128.0, 149.0, 150.0, 38.5, 45.0, 46.0,
    ]);
    values.extend([8388607.5, 8388608.0, 16777215.0, 16777216.0, 16777218.0, 4194303.5, 4194304.5]);
    let quarter = std::f64::consts::FRAC_PI_4;
    values.extend((1..33).map(|i| (quarter * f64::from(i)) as f32));
    // Arguments close to a multiple of pi/2, and large ones.
    values.extend([
        16367173.0,
        6381956970095103.0 * 2f32.powi(30),
        1e10,
        1e20,
        1e30,
        3e38,
        1.0e-4,
        1e-20,
    ]);
    let neighbours: Vec<f32> = values
        .iter()
        .filter(|x| x.is_finite())
        .flat_map(|x| [x.next_up(), x.next_down()])
        .collect();
    values.extend(neighbours);
    let negative: Vec<f32> = values.iter().map(|x| -x).collect();
    values.extend(negative);
    values
}

/// Few enough that all pairs can be tried.
pub fn pair_edges() -> Vec<f32> {
    let mut values = vec![
        0.0,
        f32::INFINITY,
        f32::NAN,
        f32::MAX,
        f32::MIN_POSITIVE,
        f32::from_bits(1),
        f32::from_bits(0x007f_ffff),
        1e-30,
        1e-5,
        0.1,
        0.5,
        1.0f32.next_down(),
        1.0,
        1.0f32.next_up(),
        1.5,
        2.0,
        2.5,
        3.0,
        7.0,
        10.0,
        100.5,
        1000.0,
        8388609.0,
        16777215.0,
        16777216.0,
        1e10,
        1e30,
    ];
    let negative: Vec<f32> = values.iter().map(|x| -x).collect();
    values.extend(negative);
    values
}
