//! Tests of the watcher without a sampler; a pipe serves as the keyboard.

use super::progress::Progress;
use super::watcher::Watcher;
use crate::activity::{ActivityWatch, Look, Roots, Sign};
use crate::clock::Moment;
use crate::live::Server;
use crate::missing_values::{AbsentValue, MissingValues, Reason};
use crate::owner::Owner;
use crate::sample::Sample;
use gleaner_schemas::live::{Message, OwnerState, SILENT_AFTER_MS};
use gleaner_schemas::rows::{ActivityRow, SampleRow};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const MINUTE: i64 = 60_000;

struct WatcherTest {
    watcher: Watcher,
    listener: BufReader<UnixStream>,
    keyboard: File,
    _root: tempfile::TempDir,
}

impl WatcherTest {
    fn new(progress: &Arc<Progress>) -> Self {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        let (roots, keyboard) = keyboard(root.path());
        let watcher = Watcher::start(
            ActivityWatch::new(roots, Moment::now().time_ms),
            Owner::new(MINUTE, MINUTE),
            Server::open(&at("agent.sock"), MINUTE).unwrap(),
            Arc::clone(progress),
        )
        .unwrap();
        let listener = UnixStream::connect(at("agent.sock")).unwrap();
        Self {
            watcher,
            listener: BufReader::new(listener),
            keyboard,
            _root: root,
        }
    }

    /// Returns the next message that is no sign of life.
    fn heard(&mut self) -> Message {
        loop {
            let mut line = String::new();
            self.listener.read_line(&mut line).unwrap();
            match serde_json::from_str(&line).unwrap() {
                Message::Alive(_) => {}
                message => return message,
            }
        }
    }

    /// Publishes a sample with an owner idle for two minutes; returns it as published.
    fn sample(&mut self) -> Sample {
        let published = self.watcher.publish(nobody(), 0.15).unwrap();
        *published.sample
    }

    fn press(&mut self) {
        press(&mut self.keyboard);
    }
}

/// Makes folders with only a keyboard; returns the keyboard's writing end.
fn keyboard(root: &Path) -> (Roots, File) {
    let node = root.join("dev/input/event0");
    std::fs::create_dir_all(root.join("dev/input")).unwrap();
    mknodat(CWD, &node, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let roots = Roots {
        dev: root.join("dev"),
        sys: root.join("sys"),
        run: root.join("run"),
    };
    let keyboard = File::options().read(true).write(true).open(&node).unwrap();
    (roots, keyboard)
}

/// Presses a key; returns the wall-clock time.
fn press(keyboard: &mut File) -> i64 {
    let now_ms = Moment::now().time_ms;
    let time = [now_ms / 1000, now_ms % 1000 * 1000].map(i64::to_ne_bytes);
    let event = [time[0], time[1], [0xee; 8]].concat();
    keyboard.write_all(&event).unwrap();
    now_ms
}

fn look() -> Look {
    Look {
        now_ms: Moment::now().time_ms,
        terminals: BTreeSet::new(),
        sessions: Err(AbsentValue::new(Reason::Unsupported, "no logind")),
    }
}

fn nobody() -> Sample {
    let input = ActivityRow {
        source: "input".into(),
        state: "ok".into(),
        idle_ms: Some(2 * MINUTE),
        devices_count: 1,
    };
    Sample {
        moment: Moment::now(),
        row: SampleRow {
            owner_idle_ms: Some(2 * MINUTE),
            load5: Some(0.1),
            ..SampleRow::default()
        },
        processes: Vec::new(),
        files: Vec::new(),
        activity: vec![input],
        numa_nodes: Vec::new(),
        cgroups: Vec::new(),
        missing_values: MissingValues::default(),
    }
}

#[test]
fn a_loop_that_hangs_gives_no_sign_of_life_and_hides_no_key_press() {
    let progress = Arc::new(Progress::hung());
    let mut watched = WatcherTest::new(&progress);
    assert!(matches!(watched.heard(), Message::Hello(_)));
    watched.sample();
    assert!(matches!(watched.heard(), Message::Sample(_)));
    assert!(matches!(watched.heard(), Message::Owner(_)));
    watched.press();
    let message = watched.heard();
    assert!(
        matches!(&message, Message::Owner(owner) if owner.state == OwnerState::InUse && owner.absence_ms >= Some(2 * MINUTE)),
        "{message:?}"
    );
    assert_eq!(watched.watcher.events().unwrap().len(), 1);

    let stream = watched.listener.get_ref().try_clone().unwrap();
    let silence = Duration::from_millis(SILENT_AFTER_MS.unsigned_abs());
    stream.set_read_timeout(Some(silence)).unwrap();
    let mut line = String::new();
    let silent = watched.listener.read_line(&mut line).unwrap_err();
    assert_eq!(silent.kind(), ErrorKind::WouldBlock, "{line}");
    progress.works();
    stream.set_read_timeout(None).unwrap();
    watched.listener.read_line(&mut line).unwrap();
    assert!(line.contains("\"alive\""), "{line}");
}

#[test]
fn a_return_between_a_samples_look_and_its_end_is_in_that_sample() {
    let mut watched = WatcherTest::new(&Arc::new(Progress::new()));
    assert!(matches!(watched.heard(), Message::Hello(_)));
    let idle_ms = |sample: &Sample| (sample.row.owner_idle_ms, sample.activity[0].idle_ms);
    let away = (Some(2 * MINUTE), Some(2 * MINUTE));
    assert_eq!(idle_ms(&watched.sample()), away);
    assert!(matches!(watched.heard(), Message::Sample(_)));
    assert!(matches!(watched.heard(), Message::Owner(_)));

    let mut missing_values = MissingValues::default();
    let rows = watched.watcher.activity().look(look(), &mut missing_values);
    assert_eq!(rows.unwrap().len(), 4);
    assert!(missing_values.has("activity"));
    watched.press();
    assert!(matches!(watched.heard(), Message::Owner(owner) if owner.absence_ms.is_some()));
    assert_eq!(idle_ms(&watched.sample()), (Some(0), Some(0)));
    let message = watched.heard();
    assert!(matches!(&message, Message::Sample(sample) if sample.row.owner_idle_ms == Some(0)));
    assert_eq!(watched.watcher.events().unwrap().len(), 1);
}

#[test]
fn a_return_that_a_look_takes_from_the_keyboard_is_a_sign_all_the_same() {
    let root = tempfile::tempdir().unwrap();
    let (roots, mut keyboard) = keyboard(root.path());
    let mut watch = ActivityWatch::new(roots, Moment::now().time_ms);
    let mut sign_after_look = |watch: &mut ActivityWatch| {
        let time_ms = press(&mut keyboard);
        watch.look(look(), &mut MissingValues::default());
        let source = "input";
        (watch.first_sign(time_ms), Some(Sign { source, time_ms }))
    };
    let (unwaited, _) = sign_after_look(&mut watch);
    assert_eq!(unwaited, None);
    assert_eq!(watch.arm(Moment::now().time_ms), Ok(None));
    let (seen, sign) = sign_after_look(&mut watch);
    assert_eq!(seen, sign);
    assert_eq!(watch.first_sign(Moment::now().time_ms), None);
}

#[test]
fn connections_end_with_the_thread_and_the_sampler_hears_of_it() {
    let mut watched = WatcherTest::new(&Arc::new(Progress::new()));
    assert!(matches!(watched.heard(), Message::Hello(_)));
    assert_eq!(watched.watcher.events().unwrap(), []);
    watched.watcher.end();
    let mut rest = String::new();
    watched.listener.read_line(&mut rest).unwrap();
    assert_eq!(rest, "");
    assert!(watched.watcher.events().is_err());
    assert!(watched.watcher.publish(nobody(), 0.15).is_err());
}
