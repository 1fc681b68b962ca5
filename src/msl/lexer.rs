//! Text to tokens.

use super::error::Fault;
use super::types::Scalar;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Token<'a> {
    Word(&'a str),
    Int {
        value: u64,
        ty: Scalar,
    },
    Float {
        value: f32,
        ty: Scalar,
    },
    /// Punctuation. `>` is always one token, since `>>` may close two template lists.
    Sign(&'static str),
    End,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Spot<'a> {
    pub token: Token<'a>,
    /// Byte offset into the text.
    pub at: u32,
}

/// Longest first.
const SIGNS: &[&str] = &[
    "<<=", "...", "::", "->", "++", "--", "<<", "<=", "==", "!=", "&&", "||", "+=", "-=", "*=",
    "/=", "%=", "&=", "|=", "^=", "[", "]", "(", ")", "{", "}", "<", ">", "+", "-", "*", "/", "%",
    "&", "|", "^", "~", "!", "=", "?", ":", ";", ",", ".", "#",
];

/// The tokens of `text` from byte `start` on, closed by [`Token::End`].
///
/// Stops without a fault after the brace that closes the first `{`, so that what follows a
/// kernel is not looked at.
pub(super) fn tokens(text: &str, start: usize) -> Result<Vec<Spot<'_>>, Fault> {
    let mut spots = Vec::new();
    let mut at = start;
    let mut depth = 0_usize;
    loop {
        at = skip_blank(text, at)?;
        let offset = u32::try_from(at).map_err(|_| Fault::parse(u32::MAX, "too long a text"))?;
        let rest = text.get(at..).unwrap_or_default();
        let Some(first) = rest.chars().next() else {
            spots.push(Spot { token: Token::End, at: offset });
            return Ok(spots);
        };
        let digit_follows = rest.as_bytes().get(1).is_some_and(u8::is_ascii_digit);
        let (token, length) = if first.is_ascii_alphabetic() || first == '_' {
            let length = word_length(rest);
            (Token::Word(&rest[..length]), length)
        } else if first.is_ascii_digit() || (first == '.' && digit_follows) {
            number(rest, offset)?
        } else if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            (Token::Sign(sign), sign.len())
        } else {
            return Err(Fault::parse(offset, format!("unexpected character {first:?}")));
        };
        spots.push(Spot { token, at: offset });
        at += length;
        match token {
            Token::Sign("{") => depth += 1,
            Token::Sign("}") => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    let at = u32::try_from(at).unwrap_or(u32::MAX);
                    spots.push(Spot { token: Token::End, at });
                    return Ok(spots);
                }
            }
            _ => {}
        }
    }
}

fn word_length(text: &str) -> usize {
    text.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count()
}

/// Past blanks and comments.
pub(super) fn skip_blank(text: &str, mut at: usize) -> Result<usize, Fault> {
    loop {
        let rest = text.get(at..).unwrap_or_default();
        let blank = rest.len() - rest.trim_start().len();
        at += blank;
        let rest = &rest[blank..];
        if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
        } else if let Some(inside) = rest.strip_prefix("/*") {
            match inside.find("*/") {
                Some(end) => at += end + 4,
                None => {
                    let at = u32::try_from(at).unwrap_or(u32::MAX);
                    return Err(Fault::parse(at, "unterminated comment"));
                }
            }
        } else {
            return Ok(at);
        }
    }
}

/// A number at the start of `text`, with its length in bytes.
fn number(text: &str, at: u32) -> Result<(Token<'_>, usize), Fault> {
    if text.starts_with("0x") || text.starts_with("0X") {
        let digits = text[2..].bytes().take_while(u8::is_ascii_hexdigit).count();
        let value = u64::from_str_radix(&text[2..2 + digits], 16)
            .map_err(|_| Fault::parse(at, "hexadecimal number"))?;
        return integer(text, 2 + digits, value, true, at);
    }
    let bytes = text.as_bytes();
    let digits = |from: usize| {
        bytes.get(from..).map_or(0, |rest| rest.iter().take_while(|b| b.is_ascii_digit()).count())
    };
    let mut length = digits(0);
    let mut is_float = false;
    if bytes.get(length) == Some(&b'.') {
        is_float = true;
        length += 1;
        length += digits(length);
    }
    if matches!(bytes.get(length), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(length + 1), Some(b'+' | b'-')));
        let exponent = digits(length + 1 + sign);
        if exponent > 0 {
            is_float = true;
            length += 1 + sign + exponent;
        }
    }
    if is_float {
        // Metal has no double: a literal without suffix is a float.
        let value: f32 = text[..length].parse().map_err(|_| Fault::parse(at, "number"))?;
        let suffix = word_length(&text[length..]);
        let ty = match &text[length..length + suffix] {
            "" | "f" | "F" => Scalar::Float,
            "h" | "H" => Scalar::Half,
            "bf" | "BF" => Scalar::BFloat,
            other => return Err(Fault::parse(at, format!("unknown suffix `{other}` of a number"))),
        };
        return Ok((Token::Float { value, ty }, length + suffix));
    }
    let octal = length > 1 && bytes.first() == Some(&b'0');
    let radix = if octal { 8 } else { 10 };
    let value = u64::from_str_radix(&text[..length], radix)
        .map_err(|_| Fault::parse(at, "integer beyond 64 bits"))?;
    integer(text, length, value, octal, at)
}

fn integer(
    text: &str,
    length: usize,
    value: u64,
    may_be_unsigned: bool,
    at: u32,
) -> Result<(Token<'_>, usize), Fault> {
    let suffix = word_length(&text[length..]);
    let (unsigned, long) = match text[length..length + suffix].to_ascii_lowercase().as_str() {
        "" => (false, false),
        "u" => (true, false),
        "l" | "ll" => (false, true),
        "ul" | "ull" | "lu" | "llu" => (true, true),
        other => return Err(Fault::parse(at, format!("unknown suffix `{other}` of a number"))),
    };
    let ty = if unsigned {
        if long || value > u64::from(u32::MAX) { Scalar::ULong } else { Scalar::UInt }
    } else if !long && i32::try_from(value).is_ok() {
        Scalar::Int
    } else if !long && may_be_unsigned && u32::try_from(value).is_ok() {
        Scalar::UInt
    } else if i64::try_from(value).is_ok() {
        Scalar::Long
    } else {
        Scalar::ULong
    };
    Ok((Token::Int { value, ty }, length + suffix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<Token<'_>> {
        tokens(text, 0).unwrap().into_iter().map(|spot| spot.token).collect()
    }

    #[test]
    fn numbers() {
        assert_eq!(
            all("0.5 1e-05 7 2.f 3u 4294967296 0xffffffff .25 5ul"),
            [
                Token::Float { value: 0.5, ty: Scalar::Float },
                Token::Float { value: 1e-5, ty: Scalar::Float },
                Token::Int { value: 7, ty: Scalar::Int },
                Token::Float { value: 2.0, ty: Scalar::Float },
                Token::Int { value: 3, ty: Scalar::UInt },
                Token::Int { value: 1 << 32, ty: Scalar::Long },
                Token::Int { value: 0xffff_ffff, ty: Scalar::UInt },
                Token::Float { value: 0.25, ty: Scalar::Float },
                Token::Int { value: 5, ty: Scalar::ULong },
                Token::End,
            ]
        );
    }

    #[test]
    fn comments_and_signs() {
        assert_eq!(
            all("a/*x*/>>=b// c\n::d"),
            [
                Token::Word("a"),
                Token::Sign(">"),
                Token::Sign(">"),
                Token::Sign("="),
                Token::Word("b"),
                Token::Sign("::"),
                Token::Word("d"),
                Token::End
            ]
        );
    }

    #[test]
    fn bad_text_is_a_fault() {
        for text in ["/* open", "0x", "99999999999999999999", "1.5q", "1hh", "a $ b", "\u{e9}"] {
            assert!(tokens(text, 0).is_err(), "{text}");
        }
    }

    #[test]
    fn stops_after_the_kernel() {
        assert_eq!(all("{ { } } $").len(), 5);
    }
}
