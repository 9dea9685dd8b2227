//! A compiler that lies in a mount.

use super::stage::Stage;
use gleaner_harness::{Running, succeed};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Source of a function `sum`.
pub(super) const SOURCE: &str = "#include <stdarg.h>\n#include <stddef.h>\n\
    double sum(size_t count, ...) {\n\
    \x20   va_list values;\n\
    \x20   va_start(values, count);\n\
    \x20   double all = 0;\n\
    \x20   for (size_t i = 0; i < count; i++) all += va_arg(values, double);\n\
    \x20   va_end(values);\n\
    \x20   return all;\n\
    }\n";

const COMPILE: [&str; 4] = ["-ffreestanding", "-Iinclude", "-O2", "-S"];

/// Answer of this machine's gcc to a question about its own files.
fn gcc_path(question: &str) -> String {
    let said = succeed(Command::new("gcc").arg(question));
    said.trim().to_owned()
}

/// Command of gcc with the compiler proper, headers and source of a folder.
fn gcc(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("gcc");
    command.current_dir(folder).args(["-B./", "-nostdinc"]);
    command.args(arguments);
    command
}

/// Seals a folder with the compiler proper, its headers and a source.
pub(super) fn sealed() -> Stage {
    Stage::sealing(|input| {
        fs::copy(gcc_path("-print-prog-name=cc1"), input.join("cc1")).unwrap();
        let mut copy = Command::new("cp");
        copy.arg("-r").arg(gcc_path("-print-file-name=include"));
        succeed(copy.arg(input.join("include")));
        fs::write(input.join("sum.c"), SOURCE).unwrap();
    })
}

/// Starts a compiler of the folder, which reads its source from standard input to the end before it compiles it.
/// `made` is the file for the code.
pub(super) fn compile_input(folder: &Path, made: &Path) -> Running {
    let mut command = gcc(folder, &COMPILE);
    command.arg("-o").arg(made).args(["-x", "c", "-"]);
    Running::start(command.stdin(Stdio::piped()))
}

#[test]
fn a_compiler_run_from_the_mount_makes_the_same_code() {
    let stage = sealed();
    let mounted = stage.mount("toolchain", &[]);
    let compiler = succeed(&mut gcc(&mounted.point, &["-print-prog-name=cc1"]));
    assert_eq!(compiler.trim(), "./cc1");
    let compile = |folder: &Path| succeed(gcc(folder, &COMPILE).args(["-o", "-", "sum.c"]));
    let made = compile(&mounted.point);
    assert!(made.contains("sum:"), "{made}");
    assert_eq!(made, compile(&stage.input()));
    assert!(mounted.figure("fetched_blocks_count") > 20);
    assert_eq!(mounted.end(), [""; 0]);
}
