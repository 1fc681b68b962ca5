//! The references themselves, held to tabulated values.

use crate::{special, tables};

fn close(name: &str, at: String, got: f64, want: f64) -> Result<(), String> {
    if (got - want).abs() <= 1e-15 + 1e-11 * want.abs() {
        Ok(())
    } else {
        Err(format!("{name}({at}): {got:e}, tabulated {want:e}"))
    }
}

pub fn references_agree_with_tables() -> Result<(), String> {
    type Unary = (&'static str, fn(f64) -> f64, &'static [(f32, f64)]);
    let unary: [Unary; 7] = [
        ("digamma", special::digamma, tables::DIGAMMA),
        ("erfinv", special::erfinv, tables::ERFINV),
        ("erfcx", special::erfcx, tables::ERFCX),
        ("i0e", special::i0e, tables::I0E),
        ("i1e", special::i1e, tables::I1E),
        ("k0e", special::k0e, tables::K0E),
        ("k1e", special::k1e, tables::K1E),
    ];
    for (name, f, table) in unary {
        for &(x, want) in table {
            close(name, format!("{x:e}"), f(f64::from(x)), want)?;
        }
    }
    type Binary = (&'static str, fn(f64, f64) -> f64, &'static [(f32, f32, f64)]);
    let binary: [Binary; 3] = [
        ("zeta", special::zeta, tables::ZETA),
        ("igamma", special::igamma, tables::IGAMMA),
        ("igammac", special::igammac, tables::IGAMMAC),
    ];
    for (name, f, table) in binary {
        for &(a, b, want) in table {
            close(name, format!("{a:e}, {b:e}"), f(f64::from(a), f64::from(b)), want)?;
        }
    }
    for &(n, x, want) in tables::POLYGAMMA {
        close("polygamma", format!("{n}, {x:e}"), special::polygamma(n, f64::from(x)), want)?;
    }
    Ok(())
}
