//! Names of types.

use super::super::ast::*;
use super::super::error::Fault;
use super::super::lexer::Token;
use super::super::types::{Scalar, Type};
use super::{Parser, Result};

impl<'a> Parser<'a> {
    /// A type: qualifiers, a name or `auto` or `decltype(..)`, perhaps `*`.
    pub(super) fn type_name(&mut self) -> Result<TypeName> {
        let at = self.at();
        while matches!(
            self.token(),
            Token::Word("const" | "volatile" | "device" | "constant" | "threadgroup" | "thread")
        ) {
            self.advance();
        }
        self.take("::");
        let kind = match self.token() {
            Token::Word("auto") => {
                self.advance();
                TypeKind::Auto
            }
            Token::Word("decltype") => {
                self.advance();
                self.expect("(")?;
                let inside = self.expression()?;
                self.expect(")")?;
                TypeKind::Decltype(Box::new(inside))
            }
            Token::Word("unsigned" | "signed") => TypeKind::Known(self.spelled_out_integer()?),
            Token::Word(word) => {
                self.advance();
                self.named_type(word, at)?
            }
            _ => {
                return Err(Fault::parse(at, format!("expected a type, found {}", self.found())));
            }
        };
        while self.take_word("const") || self.take_word("volatile") {}
        let pointer = self.take("*");
        if pointer && self.is("*") {
            return Err(Fault::unsupported(self.at(), "a pointer to a pointer"));
        }
        while pointer && (self.take_word("const") || self.take_word("restrict")) {}
        Ok(TypeName { at, kind, pointer })
    }

    fn spelled_out_integer(&mut self) -> Result<Type> {
        let unsigned = self.take_word("unsigned");
        if !unsigned {
            self.take_word("signed");
        }
        let scalar = match self.token() {
            Token::Word("char") => (Scalar::Char, Scalar::UChar),
            Token::Word("short") => (Scalar::Short, Scalar::UShort),
            Token::Word("int") => (Scalar::Int, Scalar::UInt),
            Token::Word("long") => (Scalar::Long, Scalar::ULong),
            _ => {
                let scalar = if unsigned { Scalar::UInt } else { Scalar::Int };
                return Ok(Type::scalar(scalar));
            }
        };
        self.advance();
        Ok(Type::scalar(if unsigned { scalar.1 } else { scalar.0 }))
    }

    /// A type from its first word on, which is taken already.
    fn named_type(&mut self, first: &'a str, at: u32) -> Result<TypeKind> {
        let mut word = first;
        loop {
            let argument = if template_of_types(word) && self.take("<") {
                let argument = self.deeper(Self::type_name)?;
                self.expect(">")?;
                Some(argument)
            } else {
                None
            };
            if self.take("::") {
                let outer = word;
                word = self.word("a type")?;
                if let Some(argument) = argument {
                    // `AtomicType<T>::type` is memory that holds a T.
                    if outer == "AtomicType" && word == "type" {
                        return Ok(argument.kind);
                    }
                    return Err(Fault::unsupported(at, format!("type `{outer}<..>::{word}`")));
                }
                continue;
            }
            return match (argument, word) {
                (Some(argument), "atomic" | "AtomicType_t") => Ok(argument.kind),
                (Some(_), _) => Err(Fault::unsupported(at, format!("type `{word}<..>`"))),
                (None, "atomic_int") => Ok(TypeKind::Known(Type::scalar(Scalar::Int))),
                (None, "atomic_uint") => Ok(TypeKind::Known(Type::scalar(Scalar::UInt))),
                (None, "atomic_float") => Ok(TypeKind::Known(Type::scalar(Scalar::Float))),
                (None, _) => Type::from_name(word)
                    .map(TypeKind::Known)
                    .ok_or_else(|| Fault::unsupported(at, format!("type `{word}`"))),
            };
        }
    }
}

/// Names after which `<` opens a list of types.
pub(super) fn template_of_types(name: &str) -> bool {
    matches!(
        name,
        "AtomicType"
            | "AtomicType_t"
            | "atomic"
            | "numeric_limits"
            | "MaxOp"
            | "MinOp"
            | "as_type"
            | "cast_to"
            | "opmath_t"
            | "accum_t"
    )
}
