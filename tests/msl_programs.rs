//! Every kernel of the compiled programs beside the repository is translated for every backend.

mod msl_common;

use aoti_wgpu::msl::Library;

#[test]
fn kernels_of_compiled_programs() {
    let programs = msl_common::programs();
    if programs.is_empty() {
        eprintln!("no compiled programs beside the repository: nothing to translate");
    }
    let (mut kernels, mut failures) = (0, Vec::new());
    for program in &programs {
        for source in msl_common::sources(program) {
            let name = program.parent().unwrap().display();
            let library = match Library::parse(&source) {
                Ok(library) => library,
                Err(error) => {
                    failures.push(format!("{name}: {error}"));
                    continue;
                }
            };
            assert!(library.kernel("generated_kernel").is_some(), "{name}");
            for kernel in library.kernels() {
                kernels += 1;
                let result = msl_common::lower(kernel).map_err(|error| error.to_string());
                if let Err(error) =
                    result.and_then(|program| msl_common::write_out(&program.module))
                {
                    failures.push(format!("{name}: {error}"));
                }
            }
        }
    }
    eprintln!("{kernels} kernels of {} programs", programs.len());
    assert!(
        failures.is_empty(),
        "{} of {kernels} failed:\n{}",
        failures.len(),
        failures.join("\n")
    );
}
