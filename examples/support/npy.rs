//! `.npy` files as bytes with a shape.

use std::path::Path;

pub type Failure = Box<dyn std::error::Error>;

/// Elements in row-major order, as they lie in memory.
#[allow(dead_code, reason = "each example reads what it needs")]
pub struct Array {
    /// numpy's name of the type: `f4`, `i8`, `b1`.
    pub kind: String,
    pub shape: Vec<i64>,
    pub bytes: Vec<u8>,
}

/// Reads a file of booleans, integers or floats.
#[allow(dead_code, reason = "a fuzz target has no file")]
pub fn read(path: &Path) -> Result<Array, Failure> {
    let file = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    decode(&file).map_err(|error| format!("{}: {error}", path.display()).into())
}

/// The array in a file's bytes: format versions 1.0 to 3.0 of numpy's `lib/format.py`. What
/// follows the last element is not looked at.
pub fn decode(file: &[u8]) -> Result<Array, Failure> {
    const SHORT: &str = "it ends within its header";
    let rest = file.strip_prefix(b"\x93NUMPY").ok_or("it does not begin as a .npy file")?;
    let (&[major, minor], rest) = rest.split_first_chunk::<2>().ok_or(SHORT)?;
    let (length, rest) = match (major, minor) {
        (1, 0) => {
            let (&length, rest) = rest.split_first_chunk().ok_or(SHORT)?;
            (usize::from(u16::from_le_bytes(length)), rest)
        }
        (2 | 3, 0) => {
            let (&length, rest) = rest.split_first_chunk().ok_or(SHORT)?;
            (usize::try_from(u32::from_le_bytes(length))?, rest)
        }
        _ => return Err(format!("its format version {major}.{minor} is not known").into()),
    };
    let (header, data) = rest.split_at_checked(length).ok_or(SHORT)?;
    let Header { descr, fortran, shape } = Header::parse(std::str::from_utf8(header)?)?;
    if fortran && shape.len() > 1 {
        return Err("it is in Fortran order; row-major is expected".into());
    }
    let (big_endian, kind) = match descr.strip_prefix('>') {
        Some(kind) => (true, kind),
        None => (cfg!(target_endian = "big"), descr.trim_start_matches(['<', '|', '='])),
    };
    let size = match kind {
        "b1" | "i1" | "u1" => 1,
        "i2" | "u2" | "f2" => 2,
        "i4" | "u4" | "f4" => 4,
        "i8" | "u8" | "f8" => 8,
        _ => return Err(format!("elements of type {descr:?} are not read here").into()),
    };
    let count = shape
        .iter()
        .try_fold(size, |product: usize, &n| product.checked_mul(usize::try_from(n).ok()?));
    let mut bytes = count
        .and_then(|count| data.get(..count))
        .ok_or_else(|| {
            format!("it holds {} bytes of elements, too few for {shape:?} of {kind}", data.len())
        })?
        .to_vec();
    if kind == "b1" {
        bytes.iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
    }
    if big_endian != cfg!(target_endian = "big") {
        bytes.chunks_exact_mut(size).for_each(<[u8]>::reverse);
    }
    Ok(Array { kind: kind.to_owned(), shape, bytes })
}

/// The Python dictionary at the head of a file.
struct Header<'a> {
    descr: &'a str,
    fortran: bool,
    shape: Vec<i64>,
}

impl<'a> Header<'a> {
    fn parse(text: &'a str) -> Result<Self, Failure> {
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        let mut rest = Rest(text);
        rest.expect("{")?;
        while !rest.take("}") {
            let key = rest.string()?;
            rest.expect(":")?;
            match key {
                "descr" => descr = Some(rest.string()?),
                "fortran_order" if rest.take("True") => fortran = Some(true),
                "fortran_order" => {
                    rest.expect("False")?;
                    fortran = Some(false);
                }
                "shape" => shape = Some(rest.sizes()?),
                _ => return Err(format!("its header has a key {key:?}").into()),
            }
            if !rest.take(",") {
                rest.expect("}")?;
                break;
            }
        }
        Ok(Header {
            descr: descr.ok_or("its header has no descr")?,
            fortran: fortran.ok_or("its header has no fortran_order")?,
            shape: shape.ok_or("its header has no shape")?,
        })
    }
}

/// What is left of a header.
struct Rest<'a>(&'a str);

impl<'a> Rest<'a> {
    fn take(&mut self, token: &str) -> bool {
        self.0 = self.0.trim_start();
        let after = self.0.strip_prefix(token);
        self.0 = after.unwrap_or(self.0);
        after.is_some()
    }

    fn expect(&mut self, token: &str) -> Result<(), Failure> {
        if self.take(token) { Ok(()) } else { Err(self.other_than(token)) }
    }

    fn other_than(&self, wanted: &str) -> Failure {
        let found: String = self.0.chars().take(20).collect();
        format!("its header has {found:?} where {wanted} is expected").into()
    }

    /// A string without escapes.
    fn string(&mut self) -> Result<&'a str, Failure> {
        let quote = if self.take("'") { '\'' } else { '"' };
        if quote == '"' && !self.take("\"") {
            return Err(self.other_than("a string"));
        }
        let (string, rest) =
            self.0.split_once(quote).ok_or("a string in its header does not end")?;
        self.0 = rest;
        Ok(string)
    }

    /// A tuple of integers.
    fn sizes(&mut self) -> Result<Vec<i64>, Failure> {
        self.expect("(")?;
        let mut sizes = Vec::new();
        while !self.take(")") {
            self.0 = self.0.trim_start();
            let end = self.0.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.0.len());
            let (digits, rest) = self.0.split_at(end);
            sizes.push(digits.parse().map_err(|_| self.other_than("a size"))?);
            self.0 = rest;
            if !self.take(",") {
                self.expect(")")?;
                break;
            }
        }
        Ok(sizes)
    }
}

/// The bytes of a file with elements of numpy's type `kind` in row-major order: format
/// version 1.0 of numpy's `lib/format.py`.
#[allow(dead_code, reason = "run_program reads alone")]
pub fn encode(kind: &str, shape: &[i64], bytes: &[u8]) -> Result<Vec<u8>, Failure> {
    let order = match (kind.ends_with('1'), cfg!(target_endian = "little")) {
        (true, _) => '|',
        (false, true) => '<',
        (false, false) => '>',
    };
    let sizes: String = shape.iter().map(|n| format!("{n}, ")).collect();
    let mut header = format!(
        "{{'descr': '{order}{kind}', 'fortran_order': False, 'shape': ({}), }}",
        sizes.trim_end_matches(' ')
    );
    // The whole head is a multiple of 64 bytes and ends with a newline.
    let head = 10 + header.len() + 1;
    header.extend(std::iter::repeat_n(' ', head.next_multiple_of(64) - head));
    header.push('\n');
    let mut file = Vec::with_capacity(10 + header.len() + bytes.len());
    file.extend_from_slice(b"\x93NUMPY\x01\x00");
    file.extend_from_slice(&u16::try_from(header.len())?.to_le_bytes());
    file.extend_from_slice(header.as_bytes());
    file.extend_from_slice(bytes);
    Ok(file)
}

#[allow(dead_code, reason = "run_program reads alone")]
pub fn write(path: &Path, kind: &str, shape: &[i64], bytes: &[u8]) -> Result<(), Failure> {
    let file = encode(kind, shape, bytes)?;
    std::fs::write(path, file).map_err(|error| format!("{}: {error}", path.display()).into())
}
