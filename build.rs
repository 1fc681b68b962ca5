//! Builds the few lines that must be C++: functions that throw, or through which an
//! exception of the calling program passes.
//!
//! `AOTI_WGPU_NO_CPP=1` leaves them out, for type-checks against targets without a C++
//! compiler. A library built so lacks the functions that are jumps to them.

fn main() {
    println!("cargo::rerun-if-env-changed=AOTI_WGPU_NO_CPP");
    println!("cargo::rustc-check-cfg=cfg(aoti_wgpu_no_cpp)");
    // A program's static destructors call into the library at exit, after the
    // last dlclose: it must not be unmapped before them.
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux" || os == "android") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
    if std::env::var_os("AOTI_WGPU_NO_CPP").is_some_and(|value| value != "0" && !value.is_empty()) {
        println!("cargo::rustc-cfg=aoti_wgpu_no_cpp");
        return;
    }
    let mut sources = vec!["src/ffi/check.cpp", "src/ffi/mps.cpp"];
    if std::env::var_os("CARGO_FEATURE_EXECUTORCH").is_some() {
        sources.push("src/ffi/delegate.cpp");
    }
    for source in &sources {
        println!("cargo::rerun-if-changed={source}");
    }
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        .files(sources)
        .warnings(true)
        .extra_warnings(true)
        .flag_if_supported("-fvisibility=hidden")
        .compile("aoti_wgpu_cpp");
}
