//! Counts the `unsafe` blocks and impls of `src`: a new one is to be noticed, and each
//! says why it is sound.

use std::path::{Path, PathBuf};

/// How many there are. Whoever adds one raises this, with a reason in the commit.
const KNOWN: usize = 236;

/// Lines above an `unsafe` among which its note may start: one note may stand above a match.
const REACH: usize = 14;

fn sources(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, out);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            out.push(path);
        }
    }
}

/// The `unsafe {` and `unsafe impl` of a line of code.
fn blocks(line: &str) -> usize {
    let code = line.split("//").next().unwrap_or_default();
    let rest = |part: &str| part.trim_start().starts_with('{') || part.starts_with(" impl ");
    code.split("unsafe").skip(1).filter(|part| rest(part)).count()
}

#[test]
fn unsafe_blocks_are_counted_and_have_their_proofs() {
    let mut files = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
    files.sort();
    let (mut total, mut without) = (0, Vec::new());
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let mut here = 0;
        for (i, line) in lines.iter().enumerate().filter(|(_, line)| blocks(line) > 0) {
            here += blocks(line);
            let above = &lines[i.saturating_sub(REACH)..=i];
            if !above.iter().any(|line| line.contains("SAFETY:")) {
                without.push(format!("{}:{}", path.display(), i + 1));
            }
        }
        if here > 0 {
            println!("{here:4} {}", path.display());
        }
        total += here;
    }
    println!("{total:4} in all");
    assert!(without.is_empty(), "without a SAFETY note:\n{}", without.join("\n"));
    assert!(total <= KNOWN, "{total} unsafe blocks, {KNOWN} are known");
}
