//! What the library should hold, in plain Rust: bytes, who owns them, layouts.

use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;

/// Bytes and whether their value is known; memory that nobody wrote is not.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    pub bytes: Vec<u8>,
    pub known: Vec<bool>,
}

/// Where a storage's memory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The library's, on device `mps`.
    Device,
    /// The library's, on device `cpu`.
    Host,
    /// The caller's.
    Borrowed,
}

#[derive(Debug)]
pub struct Storage {
    pub memory: RefCell<Memory>,
    pub place: Place,
    /// Bytes of the storage; the memory of a borrowed one is the whole arena.
    pub bytes: usize,
}

impl Storage {
    pub fn new(bytes: usize, place: Place) -> Rc<Self> {
        let memory = Memory { bytes: vec![0; bytes], known: vec![false; bytes] };
        Rc::new(Storage { memory: RefCell::new(memory), place, bytes })
    }
}

/// An element type of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Type {
    pub code: i32,
    pub size: usize,
}

pub const U8: Type = Type { code: 0, size: 1 };
pub const I16: Type = Type { code: 2, size: 2 };
pub const I32: Type = Type { code: 3, size: 4 };
pub const I64: Type = Type { code: 4, size: 8 };
pub const F16: Type = Type { code: 5, size: 2 };
pub const F32: Type = Type { code: 6, size: 4 };
pub const F64: Type = Type { code: 7, size: 8 };
pub const C128: Type = Type { code: 10, size: 16 };
pub const BOOL: Type = Type { code: 11, size: 1 };

pub const TYPES: [Type; 9] = [U8, I16, I32, I64, F16, F32, F64, C128, BOOL];

impl Type {
    /// Small whole numbers, which every type but the last two holds, as a float; none for others.
    pub fn whole(self, bytes: &[u8]) -> Option<f64> {
        let value = match self {
            U8 => f64::from(bytes[0]),
            I16 => f64::from(i16::from_ne_bytes(bytes.try_into().unwrap())),
            I32 => f64::from(i32::from_ne_bytes(bytes.try_into().unwrap())),
            I64 => i64::from_ne_bytes(bytes.try_into().unwrap()) as f64,
            F16 => f64::from(half::f16::from_ne_bytes(bytes.try_into().unwrap())),
            F32 => f64::from(f32::from_ne_bytes(bytes.try_into().unwrap())),
            F64 => f64::from_ne_bytes(bytes.try_into().unwrap()),
            _ => return None,
        };
        let negative_zero = value == 0.0 && value.is_sign_negative();
        ((0.0..=100.0).contains(&value) && value.fract() == 0.0 && !negative_zero).then_some(value)
    }

    pub fn of_whole(self, value: f64) -> Vec<u8> {
        match self {
            U8 => vec![value as u8],
            I16 => (value as i16).to_ne_bytes().into(),
            I32 => (value as i32).to_ne_bytes().into(),
            I64 => (value as i64).to_ne_bytes().into(),
            F16 => half::f16::from_f64(value).to_ne_bytes().into(),
            F32 => (value as f32).to_ne_bytes().into(),
            F64 => value.to_ne_bytes().into(),
            C128 => [value.to_ne_bytes(), 0f64.to_ne_bytes()].concat(),
            _ => vec![u8::from(value != 0.0)],
        }
    }
}

/// A tensor; the offset is in bytes of the storage's memory.
#[derive(Debug, Clone)]
pub struct Tensor {
    pub storage: Rc<Storage>,
    /// First byte of the storage within its memory: not 0 for blobs in the arena.
    pub base: usize,
    /// Elements from `base`.
    pub offset: i64,
    pub sizes: Vec<i64>,
    pub strides: Vec<i64>,
    pub dtype: Type,
    pub mps: bool,
    /// Bytes that the storage is said to have.
    pub storage_bytes: usize,
    /// Whether a view without holes is reported.
    pub packed_view: bool,
}

pub fn contiguous(sizes: &[i64]) -> Vec<i64> {
    let mut strides = vec![1; sizes.len()];
    let mut next = 1;
    for (stride, &size) in strides.iter_mut().zip(sizes).rev() {
        *stride = next;
        next *= size.max(1);
    }
    strides
}

pub fn count(sizes: &[i64]) -> i64 {
    sizes.iter().product()
}

pub fn extent(sizes: &[i64], strides: &[i64]) -> i64 {
    match count(sizes) {
        0 => 0,
        _ => 1 + sizes.iter().zip(strides).map(|(n, s)| (n - 1) * s).sum::<i64>(),
    }
}

/// Element offsets in row-major order.
pub fn offsets(sizes: &[i64], strides: &[i64], offset: i64) -> Vec<i64> {
    let mut out = vec![offset];
    for (&size, &stride) in sizes.iter().zip(strides) {
        out = out.iter().flat_map(|&o| (0..size).map(move |i| o + i * stride)).collect();
    }
    out
}

pub fn shares_places(sizes: &[i64], strides: &[i64]) -> bool {
    let all = offsets(sizes, strides, 0);
    all.iter().collect::<HashSet<_>>().len() != all.len()
}

/// The library's own test before a write: "yes" where dimensions interleave.
pub fn may_share_places(sizes: &[i64], strides: &[i64]) -> bool {
    let mut dims: Vec<_> =
        strides.iter().copied().zip(sizes.iter().copied()).filter(|&(_, n)| n > 1).collect();
    dims.sort_unstable();
    let mut reached = 0;
    count(sizes) > 1
        && dims.into_iter().any(|(stride, size)| {
            let inside = stride <= reached;
            reached += (size - 1) * stride;
            inside
        })
}

pub fn is_packed(sizes: &[i64], strides: &[i64]) -> bool {
    count(sizes) == extent(sizes, strides) && !shares_places(sizes, strides)
}

impl Tensor {
    pub fn numel(&self) -> i64 {
        count(&self.sizes)
    }

    /// First bytes of the elements, row-major.
    pub fn places(&self) -> Vec<usize> {
        let size = self.dtype.size as i64;
        offsets(&self.sizes, &self.strides, self.offset)
            .into_iter()
            .map(|o| self.base + (o * size) as usize)
            .collect()
    }

    /// The elements, row-major, with what is known of them.
    pub fn read(&self) -> Memory {
        let memory = self.storage.memory.borrow();
        let mut out = Memory::default();
        for at in self.places() {
            out.bytes.extend_from_slice(&memory.bytes[at..at + self.dtype.size]);
            out.known.extend_from_slice(&memory.known[at..at + self.dtype.size]);
        }
        out
    }

    pub fn write(&self, elements: &Memory) {
        let mut memory = self.storage.memory.borrow_mut();
        let size = self.dtype.size;
        for (i, at) in self.places().into_iter().enumerate() {
            memory.bytes[at..at + size].copy_from_slice(&elements.bytes[i * size..(i + 1) * size]);
            memory.known[at..at + size].copy_from_slice(&elements.known[i * size..(i + 1) * size]);
        }
    }

    /// These elements broadcast to `sizes`; none where they do not.
    pub fn broadcast(&self, sizes: &[i64]) -> Option<Tensor> {
        let added = sizes.len().checked_sub(self.sizes.len())?;
        let mut strides = vec![0; added];
        for (d, (&size, &stride)) in self.sizes.iter().zip(&self.strides).enumerate() {
            match (size, sizes[added + d]) {
                (own, wanted) if own == wanted => strides.push(stride),
                (1, _) => strides.push(0),
                _ => return None,
            }
        }
        Some(Tensor { sizes: sizes.to_vec(), strides, ..self.clone() })
    }

    /// Bytes of the memory from the first to one past the last that elements touch.
    pub fn range(&self) -> std::ops::Range<usize> {
        let size = self.dtype.size;
        let start = self.base + self.offset as usize * size;
        start..start + extent(&self.sizes, &self.strides) as usize * size
    }

    pub fn same_memory(&self, other: &Tensor) -> bool {
        Rc::ptr_eq(&self.storage, &other.storage)
    }
}
