//! Mutation of messages with fixed fields: each field is deleted, zeroed, filled, changed by a bit, doubled
//! or made enormous.

/// Fields of one message, in order: the name and the bytes of each.
pub(crate) type Message = Vec<(&'static str, Vec<u8>)>;

/// Length of an enormous field.
const ENORMOUS_BYTES: usize = 64 << 10;

/// Bytes of the message as sent.
pub(crate) fn bytes(message: &Message) -> Vec<u8> {
    message
        .iter()
        .flat_map(|(_, field)| field.clone())
        .collect()
}

/// Returns all messages that differ from `message` in one field, or that end early, each with the name of its
/// mutation.
pub(crate) fn mutations(message: &Message) -> Vec<(String, Vec<u8>)> {
    let mut mutated = Vec::new();
    for (at, (name, field)) in message.iter().enumerate() {
        for (change, now) in replacements(field) {
            let mut copy = message.clone();
            copy[at].1 = now;
            mutated.push((format!("{name} {change}"), bytes(&copy)));
        }
        let begin = bytes(&message[..at].to_vec());
        mutated.push((format!("ends before {name}"), begin));
    }
    mutated
}

fn replacements(field: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let flipped = |at: usize, bit: u8| {
        let mut copy = field.to_vec();
        if let Some(byte) = copy.get_mut(at) {
            *byte ^= bit;
        }
        copy
    };
    let times = ENORMOUS_BYTES / field.len().max(1);
    vec![
        ("deleted", Vec::new()),
        ("zeroes", vec![0; field.len()]),
        ("ones", vec![0xff; field.len()]),
        ("highest bit", flipped(0, 0x80)),
        ("lowest bit", flipped(field.len().saturating_sub(1), 1)),
        ("doubled", field.repeat(2)),
        ("enormous", field.repeat(times)),
    ]
}

/// Returns orders of `count` messages: with one omitted, one repeated, two swapped, or all reversed.
pub(crate) fn orders(count: usize) -> Vec<Vec<usize>> {
    let all: Vec<usize> = (0..count).collect();
    let mut orders = vec![all.iter().rev().copied().collect()];
    for at in 0..count {
        let (mut without, mut twice) = (all.clone(), all.clone());
        without.remove(at);
        twice.insert(at, at);
        orders.extend([without, twice]);
        for other in at + 1..count {
            let mut swapped = all.clone();
            swapped.swap(at, other);
            orders.push(swapped);
        }
    }
    orders
}
