//! Renders frames for a terminal size, and compares them with the files in `golden/`.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::prelude::Frame;
use std::path::Path;

/// Content of `width` × `height` cells, without blanks at line ends.
pub(super) fn render_text(width: u16, height: u16, draw: impl FnOnce(&mut Frame<'_>)) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(draw).unwrap();
    let buffer = terminal.backend().buffer();
    let rows = buffer.content.chunks(usize::from(width));
    let lines = rows.map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>());
    let lines: Vec<String> = lines.map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n") + "\n"
}

/// Compares a frame with the file `golden/NAME.txt`. If the environment has `GLEANER_GOLDEN=write`, first
/// writes the frame to the file.
#[track_caller]
pub(super) fn same_as_golden(name: &str, frame: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/top/golden");
    let path = folder.join(format!("{name}.txt"));
    if std::env::var_os("GLEANER_GOLDEN").is_some_and(|value| value == "write") {
        std::fs::write(&path, frame).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        frame == expected,
        "{}:\n{expected}\nfound:\n{frame}",
        path.display()
    );
}
