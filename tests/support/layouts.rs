//! Random pairs of layouts, and the plain walk that everything is compared with.

use aoti_wgpu::layout::Layout;

/// A small generator of our own, so that a failing seed can be run again.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// `low` up to, but not including, `high`.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low + (self.next() % (high - low) as u64) as i64
    }

    pub fn one_in(&mut self, n: u64) -> bool {
        self.next().is_multiple_of(n)
    }

    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.next() as usize % of.len()]
    }

    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len.div_ceil(8)).flat_map(|_| self.next().to_le_bytes()).take(len).collect()
    }
}

/// Sizes whose product is at most `most`.
fn sizes(random: &mut Random, most: i64) -> Vec<i64> {
    let rank = random.between(0, 6) as usize;
    let mut room = most;
    (0..rank)
        .map(|_| {
            let largest = random.pick(&[3, 9, 70, 300]).min(room) + 1;
            let size = random.between(1, largest.max(2));
            room /= size;
            size
        })
        .collect()
}

/// A view of these sizes of some contiguous base: dimensions in any order, each a
/// slice, with a step perhaps.
fn view(random: &mut Random, sizes: &[i64], tight: bool, shuffle: bool) -> Layout {
    let mut order: Vec<usize> = (0..sizes.len()).rev().collect();
    if shuffle {
        for i in (1..order.len()).rev() {
            order.swap(i, random.between(0, i as i64 + 1) as usize);
        }
    }
    let (mut strides, mut next, mut offset) = (vec![1; sizes.len()], 1, 0);
    for d in order {
        let cut = !tight && random.one_in(2);
        let step = if cut && random.one_in(2) { random.between(2, 4) } else { 1 };
        let before = if cut { random.between(0, 4) } else { 0 };
        let after = if cut { random.between(0, 12) } else { 0 };
        strides[d] = next * step;
        offset += before * next;
        next *= before + sizes[d] * step + after;
    }
    offset += if random.one_in(3) { random.between(0, 40) } else { 0 };
    Layout::new(sizes, &strides, offset).unwrap()
}

/// A destination and a source of its sizes, perhaps expanded.
pub fn pair(random: &mut Random, most: i64) -> (Layout, Layout) {
    let sizes = sizes(random, most);
    let (tight, shuffle) = (random.one_in(2), random.one_in(4));
    let dst = view(random, &sizes, tight, shuffle);
    let (tight, shuffle) = (random.one_in(3), random.one_in(2));
    let mut src = view(random, &sizes, tight, shuffle);
    if random.one_in(4) {
        let strides: Vec<i64> =
            src.strides().iter().map(|&s| if random.one_in(3) { 0 } else { s }).collect();
        src = Layout::new(&sizes, &strides, src.offset()).unwrap();
    }
    (dst, src)
}

/// The offsets of all elements in row-major order.
pub fn walk(l: &Layout) -> Vec<usize> {
    let mut offsets = vec![l.offset() as usize];
    for (&size, &stride) in l.sizes().iter().zip(l.strides()) {
        let stride = stride as usize;
        offsets =
            offsets.iter().flat_map(|&o| (0..size as usize).map(move |i| o + i * stride)).collect();
    }
    offsets
}

/// Copies element by element.
pub fn copy(dst: &Layout, src: &Layout, element: usize, to: &mut [u8], from: &[u8]) {
    for (d, s) in walk(dst).into_iter().zip(walk(src)) {
        to[d * element..][..element].copy_from_slice(&from[s * element..][..element]);
    }
}
