use super::*;
use proptest::prelude::*;
use std::sync::atomic::AtomicBool;
use std::thread;

const GENERATION: u64 = 7;
/// Maximum time to give all memory back, however busy the machine is.
const AT_MOST: std::time::Duration = std::time::Duration::from_secs(10);
const PAGE: usize = PAGE_BYTES as usize;

fn store(slabs: u64) -> Arc<Store> {
    let options = Options::default();
    Arc::new(Store::new(slabs * SLAB_BYTES, GENERATION, options).unwrap())
}

fn is_gone<T: std::fmt::Debug>(result: Result<T, Error>) -> bool {
    matches!(result, Err(Error::Gone))
}

/// Resident bytes of the slabs, as the kernel reports them.
fn resident_bytes(store: &Store) -> u64 {
    let range = store.addresses();
    let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let (mut is_ours, mut kib) = (false, 0);
    for line in smaps.lines() {
        let mut words = line.split_whitespace();
        let first = words.next().unwrap();
        if let Some((from, to)) = first.split_once('-') {
            let [from, to] = [from, to].map(|hex| usize::from_str_radix(hex, 16).unwrap());
            is_ours = from < range.end && range.start < to;
        } else if is_ours && first == "Rss:" {
            kib += words.next().unwrap().parse::<u64>().unwrap();
        }
    }
    kib << 10
}

#[test]
fn pages_are_blank_until_written_and_gone_once_revoked() {
    let store = store(4);
    store.open("a", "client", 3 * SLAB_BYTES);
    let pages = store.pages("a", GENERATION).unwrap();
    let mut found = vec![9; PAGE];
    pages.read(SLAB_BYTES, &mut found).unwrap();
    assert_eq!(found, vec![0; PAGE]);
    assert_eq!((store.held_bytes(), resident_bytes(&store)), (0, 0));

    // The range crosses the border of two slabs.
    let written: Vec<u8> = (0..3 * PAGE).map(|i| (i % 251) as u8).collect();
    let at = SLAB_BYTES - PAGE_BYTES;
    pages.write(at, &written).unwrap();
    let mut found = vec![9; written.len()];
    pages.read(at, &mut found).unwrap();
    assert!(found == written);
    assert_eq!(store.held_bytes(), 2 * SLAB_BYTES);
    assert!(resident_bytes(&store) >= 3 * PAGE_BYTES);

    let given = store.revoke("a");
    assert_eq!(given.bytes, 2 * SLAB_BYTES);
    assert!(given.first_reclaim_us <= given.full_reclaim_us);
    assert_eq!((store.held_bytes(), resident_bytes(&store)), (0, 0));
    assert!(is_gone(pages.read(at, &mut found)));
    assert!(is_gone(pages.write(at, &written)));
    assert!(is_gone(pages.discard(at, 1)));
    assert_eq!(resident_bytes(&store), 0);

    // The next lease in that memory reads none of the former contents, and the old handle stays invalid.
    store.open("a", "client", 3 * SLAB_BYTES);
    let again = store.pages("a", GENERATION).unwrap();
    again.write(at, &[1]).unwrap();
    let mut found = vec![9; PAGE];
    again.read(at, &mut found).unwrap();
    assert_eq!((found[0], &found[1..]), (1, &vec![0; PAGE - 1][..]));
    assert!(is_gone(pages.read(at, &mut found)));
}

#[test]
fn other_contents_are_another_generation_and_a_lease_has_an_end() {
    let store = store(2);
    store.open("a", "client", 2 * SLAB_BYTES);
    assert!(is_gone(store.pages("a", GENERATION + 1).map(|_| ())));
    assert!(is_gone(store.pages("b", GENERATION).map(|_| ())));
    let pages = store.pages("a", GENERATION).unwrap();
    for (offset, bytes) in [
        (2 * SLAB_BYTES, 1),
        (u64::MAX, 2),
        (SLAB_BYTES, SLAB_BYTES + 1),
    ] {
        let found = pages.discard(offset, bytes);
        assert!(matches!(found, Err(Error::Beyond { .. })), "{found:?}");
    }
    pages.write(2 * SLAB_BYTES, &[]).unwrap();

    // More memory is promised than the store has. A write without a free slab is an error, and existing
    // contents stay.
    store.open("b", "client", 3 * SLAB_BYTES);
    let other = store.pages("b", GENERATION).unwrap();
    for slab in 0..2 {
        other.write(slab * SLAB_BYTES, &[5]).unwrap();
    }
    assert!(matches!(pages.write(0, &[1]), Err(Error::Full)));
    let given = store.revoke_all();
    assert_eq!((given.bytes, store.held_bytes()), (2 * SLAB_BYTES, 0));
    assert!(is_gone(pages.read(0, &mut [0])));
}

#[test]
fn the_oldest_slabs_go_first_and_what_went_is_never_blank() {
    let store = store(8);
    store.open("a", "client", 4 * SLAB_BYTES);
    store.open("b", "client", 4 * SLAB_BYTES);
    let a = store.pages("a", GENERATION).unwrap();
    let b = store.pages("b", GENERATION).unwrap();
    for (pages, slab) in [(&b, 3), (&a, 0), (&b, 1), (&a, 2)] {
        pages.write(slab * SLAB_BYTES, &[slab as u8 + 1]).unwrap();
    }
    // Writing again does not make a slab younger.
    b.write(3 * SLAB_BYTES, &[9]).unwrap();
    let (of_leases, given) = store.shrink(2 * SLAB_BYTES - 1);
    let each = |id: &str| (id.to_owned(), SLAB_BYTES);
    assert_eq!(of_leases, [each("a"), each("b")]);
    assert_eq!(given.bytes, 2 * SLAB_BYTES);
    let byte = |pages: &Pages, slab: u64| {
        let mut found = [0];
        pages.read(slab * SLAB_BYTES, &mut found).map(|()| found[0])
    };
    assert!(is_gone(byte(&b, 3)) && is_gone(byte(&a, 0)));
    assert!(is_gone(b.write(3 * SLAB_BYTES, &[1])));
    assert_eq!((byte(&b, 1).unwrap(), byte(&a, 2).unwrap()), (2, 3));
    // A page that was never written cannot be lost.
    assert_eq!(byte(&a, 1).unwrap(), 0);
    let (of_leases, given) = store.shrink(u64::MAX);
    assert_eq!((of_leases.len(), given.bytes), (2, 2 * SLAB_BYTES));
    assert_eq!(resident_bytes(&store), 0);
    assert_eq!(store.shrink(SLAB_BYTES).1.bytes, 0);
}

#[test]
fn a_slab_goes_back_once_all_of_it_is_discarded() {
    let store = store(2);
    store.open("a", "client", 2 * SLAB_BYTES);
    let pages = store.pages("a", GENERATION).unwrap();
    pages.write(0, &vec![1; SLAB_BYTES as usize]).unwrap();
    pages.discard(0, SLAB_BYTES - PAGE_BYTES).unwrap();
    assert_eq!(store.held_bytes(), SLAB_BYTES);
    pages.discard(SLAB_BYTES - PAGE_BYTES, PAGE_BYTES).unwrap();
    assert_eq!((store.held_bytes(), resident_bytes(&store)), (0, 0));
    let mut found = vec![9; PAGE];
    pages.read(SLAB_BYTES - PAGE_BYTES, &mut found).unwrap();
    assert_eq!(found, vec![0; PAGE]);
}

#[derive(Clone, Debug)]
enum Step {
    Write(usize, usize, u8),
    Discard(usize, usize),
    Read(usize, usize),
}

const LEASE: usize = 2 * SLAB_BYTES as usize;

/// Ranges that begin and end within pages, at borders of pages, or at borders of slabs.
fn range() -> impl Strategy<Value = (usize, usize)> {
    let at = prop_oneof![
        0..LEASE,
        (0..LEASE / PAGE).prop_map(|page| page * PAGE),
        (SLAB_BYTES as usize - 2 * PAGE)..(SLAB_BYTES as usize + 2 * PAGE),
    ];
    let length = prop_oneof![0..3 * PAGE, Just(PAGE), Just(SLAB_BYTES as usize)];
    (at, length).prop_map(|(at, length)| (at, length.min(LEASE - at)))
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (range(), 1..=255_u8).prop_map(|((at, n), byte)| Step::Write(at, n, byte)),
        2 => range().prop_map(|(at, n)| Step::Discard(at, n)),
        2 => range().prop_map(|(at, n)| Step::Read(at, n)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn as_a_plain_row_of_bytes(steps in proptest::collection::vec(step(), 1..40)) {
        let store = store(2);
        store.open("a", "client", LEASE as u64);
        let pages = store.pages("a", GENERATION).unwrap();
        let mut row = vec![0_u8; LEASE];
        for step in steps {
            match step {
                Step::Write(at, n, byte) => {
                    row[at..at + n].fill(byte);
                    let mut filled = 0;
                    let mut fill = |bytes: &mut [u8]| {
                        // The filling ends within a page, as if no more bytes had arrived.
                        filled = bytes.len().min(2 * PAGE + 5);
                        bytes[..filled].fill(byte);
                        filled
                    };
                    pages.fill(at as u64, n as u64, &mut fill).unwrap();
                    let from = at + filled - filled % PAGE;
                    pages.write(from as u64, &row[from..at + n]).unwrap();
                }
                Step::Discard(at, n) => {
                    row[at..at + n].fill(0);
                    pages.discard(at as u64, n as u64).unwrap();
                }
                Step::Read(at, n) => {
                    let mut found = vec![7; n];
                    pages.read(at as u64, &mut found).unwrap();
                    prop_assert!(found == row[at..at + n], "{at} + {n}");
                    let mut seen = None;
                    let is_shown = pages.show(at as u64, n as u64, &mut |bytes| seen = Some(bytes.to_vec()));
                    prop_assert_eq!(is_shown.unwrap(), seen.is_some());
                    prop_assert!(seen.is_none_or(|seen| seen == found), "{} + {}", at, n);
                }
            }
        }
        let mut found = vec![7; LEASE];
        pages.read(0, &mut found).unwrap();
        prop_assert!(found == row);
        store.revoke_all();
        prop_assert_eq!((store.held_bytes(), resident_bytes(&store)), (0, 0));
    }
}

/// Small and repeatable random numbers: xorshift.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

const WRITERS: u64 = 4;
const SLABS: u64 = 24;
const PAGES_EACH: u64 = 4 * SLAB_BYTES / PAGE_BYTES;

/// Writes pages that contain lease, place and version, and reads them back, until `is_over` is set. A read
/// must return the bytes written last, or an error.
fn hammer(store: &Arc<Store>, me: u64, leases: &Mutex<Vec<String>>, is_over: &AtomicBool) -> u64 {
    let mut dice = Dice(me + 1);
    let mut version = 0;
    let mut written = BTreeMap::<(String, u64), u64>::new();
    let mut buffer = vec![0_u8; PAGE];
    let mut checked = 0;
    while !is_over.load(Ordering::SeqCst) {
        let id = {
            let leases = lock(leases);
            if leases.is_empty() {
                thread::yield_now();
                continue;
            }
            leases[dice.below(leases.len() as u64) as usize].clone()
        };
        let Ok(pages) = store.pages(&id, GENERATION) else {
            continue;
        };
        for _ in 0..64 {
            // Each writer has its own pages, but the writers share slabs.
            let page = dice.below(PAGES_EACH / WRITERS) * WRITERS + me;
            let key = (id.clone(), page);
            let mark = |version: u64| {
                let mut words = Vec::with_capacity(PAGE);
                for word in [id.parse::<u64>().unwrap(), page, version]
                    .iter()
                    .cycle()
                    .take(PAGE / 8)
                {
                    words.extend(word.to_le_bytes());
                }
                words
            };
            let at = page * PAGE_BYTES;
            let done = match dice.below(8) {
                0..=3 => {
                    version += 1;
                    let done = pages.write(at, &mark(version));
                    if done.is_ok() {
                        written.insert(key, version);
                    }
                    done
                }
                4 => {
                    let done = pages.discard(at, PAGE_BYTES);
                    if done.is_ok() {
                        written.remove(&key);
                    }
                    done
                }
                _ => {
                    let mut look = |bytes: &[u8]| buffer.copy_from_slice(bytes);
                    let done = match pages.show(at, PAGE_BYTES, &mut look) {
                        Ok(true) => Ok(()),
                        Ok(false) => pages.read(at, &mut buffer),
                        Err(e) => Err(e),
                    };
                    if done.is_ok() {
                        let expected = written.get(&key).map_or(vec![0; PAGE], |v| mark(*v));
                        assert!(buffer == expected, "lease {id}, page {page}");
                        checked += 1;
                    }
                    done
                }
            };
            match done {
                Ok(()) | Err(Error::Full) => {}
                Err(Error::Gone) => break,
                Err(e) => panic!("{e}"),
            }
        }
    }
    checked
}

/// Ends the writers even if an assertion fails, since the test waits for them.
struct EndGuard<'a>(&'a AtomicBool);

impl Drop for EndGuard<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn given_back_under_load_no_byte_is_wrong_and_nothing_stays() {
    let store = store(SLABS);
    let leases = Mutex::new(Vec::new());
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let end = EndGuard(&is_over);
        let writers: Vec<_> = (0..WRITERS)
            .map(|me| {
                scope.spawn({
                    let (store, leases, is_over) = (&store, &leases, &is_over);
                    move || hammer(store, me, leases, is_over)
                })
            })
            .collect();
        let mut dice = Dice(99);
        let mut id = 0;
        for _ in 0..150 {
            while lock(&leases).len() < 5 {
                id += 1;
                store.open(&id.to_string(), "client", PAGES_EACH * PAGE_BYTES);
                lock(&leases).push(id.to_string());
            }
            // Waits for a condition, not for a time: there must be memory to give back.
            while store.held_bytes() < 8 * SLAB_BYTES {
                thread::yield_now();
            }
            match dice.below(4) {
                0 => {
                    let lost: u64 = store.shrink(3 * SLAB_BYTES).0.iter().map(|(_, b)| b).sum();
                    assert!(lost <= 3 * SLAB_BYTES);
                    // A lease that lost a part answers "gone" for good. So a lease is ended here, and another
                    // will replace it.
                    let first = lock(&leases).remove(0);
                    store.revoke(&first);
                }
                1 => {
                    let some = lock(&leases).pop().unwrap();
                    store.revoke(&some);
                }
                _ => {
                    // The writers continue to write to the leases that they know.
                    let began = std::time::Instant::now();
                    store.revoke_all();
                    assert!(began.elapsed() < AT_MOST, "{:?}", began.elapsed());
                    assert_eq!((store.held_bytes(), resident_bytes(&store)), (0, 0));
                    lock(&leases).clear();
                }
            }
        }
        drop(end);
        let checked: u64 = writers.into_iter().map(|w| w.join().unwrap()).sum();
        assert!(checked > 1000, "{checked} reads");
    });
    store.revoke_all();
    assert_eq!((store.held_bytes(), resident_bytes(&store)), (0, 0));
    // Every slab can be used again.
    store.open("last", "client", SLABS * SLAB_BYTES);
    let last = store.pages("last", GENERATION).unwrap();
    for slab in 0..SLABS {
        last.write(slab * SLAB_BYTES, &[1]).unwrap();
    }
}
