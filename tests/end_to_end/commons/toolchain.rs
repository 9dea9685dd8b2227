//! A compiler that lies in a mount.

use super::stage::Stage;
use gleaner_harness::succeed;
use std::fs;
use std::path::Path;
use std::process::Command;

const SOURCE: &str = "#include <stdarg.h>\n#include <stddef.h>\n\
    double sum(size_t count, ...) {\n\
    \x20   va_list values;\n\
    \x20   va_start(values, count);\n\
    \x20   double all = 0;\n\
    \x20   for (size_t i = 0; i < count; i++) all += va_arg(values, double);\n\
    \x20   va_end(values);\n\
    \x20   return all;\n\
    }\n";

/// Answer of this machine's gcc to a question about its own files.
fn gcc_path(question: &str) -> String {
    let said = succeed(Command::new("gcc").arg(question));
    said.trim().to_owned()
}

/// Runs gcc with the compiler proper, headers and source of a folder; returns its output.
fn gcc(folder: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("gcc");
    command.current_dir(folder).args(["-B./", "-nostdinc"]);
    succeed(command.args(arguments))
}

#[test]
fn a_compiler_run_from_the_mount_makes_the_same_code() {
    let stage = Stage::sealing(|input| {
        fs::copy(gcc_path("-print-prog-name=cc1"), input.join("cc1")).unwrap();
        let mut copy = Command::new("cp");
        copy.arg("-r").arg(gcc_path("-print-file-name=include"));
        succeed(copy.arg(input.join("include")));
        fs::write(input.join("sum.c"), SOURCE).unwrap();
    });
    let mounted = stage.mount("toolchain", &[]);
    let compiler = gcc(&mounted.point, &["-print-prog-name=cc1"]);
    assert_eq!(compiler.trim(), "./cc1");
    let compile = [
        "-ffreestanding",
        "-Iinclude",
        "-O2",
        "-S",
        "-o",
        "-",
        "sum.c",
    ];
    let made = gcc(&mounted.point, &compile);
    assert!(made.contains("sum:"), "{made}");
    assert_eq!(made, gcc(&stage.input(), &compile));
    assert!(mounted.figure("fetched_blocks_count") > 20);
    assert_eq!(mounted.end(), [""; 0]);
}
