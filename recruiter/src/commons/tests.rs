//! Tests of members and epochs, without sockets: messages are read from the members' queues.

use super::epochs::LEAST_EPOCH_MS;
use super::*;
use gleaner_policy::global::age::{CLASSES, class_of};
use gleaner_policy::global::node_of_host;
use gleaner_schemas::commons::{
    BLOCK_BYTES, CommonsMember, CommonsMessage, MembersChange, ReportPlease, VERSION, Weights,
};
use proptest::prelude::*;

const NAME: &str = "toolchains";
/// Limit of each member's weight, in frames.
const LIMIT: u64 = 10_000;

fn moment(now_ms: i64) -> Moment {
    Moment {
        now_ms,
        time_s: 1_000_000 + now_ms.unsigned_abs() / 1000,
    }
}

fn memory(frames: u64) -> MemberMemory {
    MemberMemory {
        own: None,
        limit_bytes: frames * BLOCK_BYTES,
    }
}

fn hello(generation: u32) -> Hello {
    Hello {
        version: VERSION,
        generation,
        address: "192.0.2.1:7445".to_owned(),
        frames: 100,
        ..Hello::default()
    }
}

/// Summary with `free` free frames and `old` blocks unused for 40 s.
fn summary(epoch: u64, free: u32, old: u32) -> Summary {
    let mut classes = vec![0; CLASSES];
    classes[class_of(40_000)] = old;
    Summary {
        epoch,
        classes,
        free_frames: free,
        ..Summary::default()
    }
}

/// A member with the messages that it has received.
struct TestMember {
    link: MemberLink,
    queue: mpsc::Receiver<Utf8Bytes>,
    list: BTreeMap<u32, CommonsMember>,
    requests: Vec<ReportPlease>,
    weights: Vec<Weights>,
    changes: Vec<MembersChange>,
}

impl TestMember {
    fn join(commonses: &mut Commonses, host: u32, number: u64, now_ms: i64) -> Self {
        let link = MemberLink {
            name: NAME.to_owned(),
            host_id: format!("{host:032x}").into(),
            number,
        };
        let joined = commonses.hello(&link, &hello(1), memory(LIMIT), moment(now_ms));
        Self {
            queue: joined.unwrap().unwrap(),
            link,
            list: BTreeMap::new(),
            requests: Vec::new(),
            weights: Vec::new(),
            changes: Vec::new(),
        }
    }

    fn receive(&mut self) {
        while let Ok(text) = self.queue.try_recv() {
            match serde_json::from_str(&text).unwrap() {
                CommonsMessage::ReportPlease(request) => self.requests.push(request),
                CommonsMessage::Weights(weights) => self.weights.push(weights),
                CommonsMessage::Members(change) => {
                    if change.is_complete {
                        self.list.clear();
                    }
                    for node in &change.gone {
                        self.list.remove(node);
                    }
                    let present = change.present.iter().cloned();
                    self.list
                        .extend(present.map(|member| (member.node, member)));
                    self.changes.push(change);
                }
                other => panic!("{other:?}"),
            }
        }
    }

    fn report(&mut self, commonses: &mut Commonses, free: u32, old: u32, now_ms: i64) {
        self.receive();
        let epoch = self.requests.last().unwrap().epoch;
        let said = summary(epoch, free, old);
        let done = commonses.summary(&self.link, &said, memory(LIMIT), moment(now_ms));
        done.unwrap();
    }
}

/// Members of hosts 1 to `count`, which have the complete list.
fn cluster(count: u32) -> (Commonses, Vec<TestMember>) {
    let mut commonses = Commonses::new(1);
    let join = |host| TestMember::join(&mut commonses, host, u64::from(host), 0);
    let mut members: Vec<TestMember> = (1..=count).map(join).collect();
    commonses.tick(moment(0));
    for member in &mut members {
        member.receive();
        assert_eq!(member.list.len(), count as usize);
    }
    (commonses, members)
}

#[test]
fn a_change_of_a_member_reaches_all_others_once() {
    let (mut commonses, mut members) = cluster(3);
    let link = members[0].link.clone();
    let again = commonses.hello(&link, &hello(1), memory(LIMIT), moment(1));
    assert!(again.unwrap().is_none(), "the connection is the same");
    commonses.tick(moment(1));
    let next = commonses.hello(&link, &hello(2), memory(LIMIT), moment(2));
    assert!(next.unwrap().is_none());
    commonses.tick(moment(2));
    commonses.leave(&members[2].link.clone());
    commonses.tick(moment(3));
    members[1].receive();
    let changes = &members[1].changes;
    assert_eq!(changes.len(), 3, "{changes:?}");
    assert!(changes[0].is_complete && !changes[1].is_complete);
    assert_eq!(changes[1].present.len(), 1);
    assert_eq!(changes[1].present[0].generation, 2);
    assert_eq!(changes[2].gone, [node_of_host(&members[2].link.host_id)]);
    assert_eq!(members[1].list.len(), 2);
}

#[test]
fn weights_follow_the_oldest_frames_and_no_weight_exceeds_its_limit() {
    let (mut commonses, mut members) = cluster(3);
    commonses.tick(moment(LEAST_EPOCH_MS));
    // The first member claims more frames than its host can have.
    for (member, (free, old)) in members.iter_mut().zip([(u32::MAX, 0), (30, 0), (0, 100)]) {
        member.report(&mut commonses, free, old, LEAST_EPOCH_MS);
    }
    commonses.tick(moment(LEAST_EPOCH_MS + 1));
    for member in &mut members {
        member.receive();
    }
    let own: Vec<u64> = members.iter().map(|m| m.weights[0].own_weight).collect();
    let sum: u64 = own.iter().sum();
    assert_eq!(sum, 64, "the least number of replacements");
    assert!(own[0] <= LIMIT && own[2] == 0, "{own:?}");
    assert_eq!(
        members[0].weights[0].min_age_ms, None,
        "free frames suffice"
    );
    let targets = &members[2].weights[0].targets;
    assert_eq!(targets.iter().map(|(_, weight)| weight).sum::<u64>(), sum);
    assert_eq!(
        members.iter().filter(|m| m.weights[0].is_counter).count(),
        1
    );
    let view = &commonses.views(LEAST_EPOCH_MS + 5)[0];
    assert_eq!((view.weights_sum, view.weights_age_ms), (64, Some(4)));
    assert_eq!(view.members[0].weight_limit, LIMIT);
    assert!(view.is_initiator && view.epoch >= 1_000_000);
}

#[test]
fn a_member_without_memory_gets_no_weight() {
    let (mut commonses, mut members) = cluster(1);
    commonses.tick(moment(LEAST_EPOCH_MS));
    members[0].receive();
    let said = summary(members[0].requests[0].epoch, 1_000, 1_000);
    let link = members[0].link.clone();
    let done = commonses.summary(&link, &said, memory(0), moment(LEAST_EPOCH_MS));
    done.unwrap();
    commonses.tick(moment(LEAST_EPOCH_MS));
    members[0].receive();
    assert_eq!(members[0].weights[0].own_weight, 0);
}

#[test]
fn an_epoch_ends_early_when_a_member_reports_it_and_never_more_often_than_once_a_second() {
    let (mut commonses, mut members) = cluster(1);
    let link = members[0].link.clone();
    let begun_ms = LEAST_EPOCH_MS;
    commonses.tick(moment(begun_ms));
    members[0].report(&mut commonses, 100, 0, begun_ms);
    commonses.tick(moment(begun_ms));
    members[0].receive();
    let epoch = members[0].weights[0].epoch;
    let ended = |commonses: &mut Commonses, epoch, at_ms| {
        commonses.ended(&link, epoch, moment(at_ms)).unwrap();
        commonses.tick(moment(at_ms));
    };
    ended(&mut commonses, epoch - 1, begun_ms + 3_000);
    members[0].receive();
    assert_eq!(members[0].requests.len(), 1, "another epoch is meant");
    ended(&mut commonses, epoch, begun_ms + 3_000);
    members[0].receive();
    assert_eq!(members[0].requests.len(), 2);
    assert!(members[0].requests[1].epoch > epoch);
    members[0].report(&mut commonses, 100, 0, begun_ms + 3_000);
    commonses.tick(moment(begun_ms + 3_000));
    let next = members[0].requests[1].epoch;
    ended(&mut commonses, next, begun_ms + 3_001);
    members[0].receive();
    assert_eq!(members[0].requests.len(), 2, "too early");
    commonses.tick(moment(begun_ms + 3_000 + LEAST_EPOCH_MS));
    members[0].receive();
    assert_eq!(members[0].requests.len(), 3);
}

#[test]
fn a_member_that_sends_nothing_is_gone_and_the_epoch_goes_on_without_it() {
    let (mut commonses, mut members) = cluster(2);
    let link = members[0].link.clone();
    for now_ms in (0..SILENCE_MS).step_by(1000) {
        commonses
            .hello(&link, &hello(1), memory(LIMIT), moment(now_ms))
            .unwrap();
        commonses.tick(moment(now_ms));
        members[0].receive();
    }
    assert_eq!(members[0].list.len(), 2);
    commonses.tick(moment(SILENCE_MS));
    members[0].receive();
    assert_eq!(members[0].list.len(), 1);
    members[1].receive();
    assert!(
        members[1].queue.is_closed(),
        "the silent member's connection ends"
    );
    // The weights came although one summary was missing.
    assert!(!members[0].weights.is_empty());
}

#[test]
fn messages_that_no_honest_member_sends_are_refused_and_change_nothing() {
    let (mut commonses, mut members) = cluster(2);
    let (liar, honest) = (members[0].link.clone(), members[1].link.clone());
    let now = moment(LEAST_EPOCH_MS);
    commonses.tick(now);
    let before = commonses.views(0);
    let spoilt: [fn(&mut Hello); 5] = [
        |said| said.version = VERSION + 1,
        |said| said.address = "x".repeat(1000),
        |said| said.address = "192.0.2.1".to_owned(),
        |said| said.address = "a b:1".to_owned(),
        |said| said.epoch = u64::MAX,
    ];
    for (index, spoil) in spoilt.iter().enumerate() {
        let mut said = hello(7);
        spoil(&mut said);
        let refused = commonses
            .hello(&liar, &said, memory(LIMIT), now)
            .unwrap_err();
        assert_eq!(refused.kind, RefusalKind::Malformed, "{index}");
        assert!(refused.detail.len() < 300, "{index}: {}", refused.detail);
    }
    members[0].receive();
    let asked = members[0].requests[0].epoch;
    let mut short = summary(asked, 1, 0);
    short.classes.pop();
    for said in [summary(asked + 1, 1, 0), summary(0, 1, 0), short] {
        let refused = commonses.summary(&liar, &said, memory(LIMIT), now);
        assert_eq!(refused.unwrap_err().kind, RefusalKind::Malformed);
    }
    members[0].report(&mut commonses, 1, 0, LEAST_EPOCH_MS);
    let twice = commonses.summary(&liar, &summary(asked, 1, 0), memory(LIMIT), now);
    assert_eq!(twice.unwrap_err().kind, RefusalKind::Malformed);
    assert!(commonses.ended(&liar, u64::MAX, now).is_err());
    let stranger = MemberLink {
        number: 99,
        ..liar.clone()
    };
    assert!(commonses.ended(&stranger, asked, now).is_err());
    assert_eq!(commonses.views(0), before);
    let wrong_name = MemberLink {
        name: "../x".to_owned(),
        ..honest
    };
    assert!(
        commonses
            .hello(&wrong_name, &hello(1), memory(LIMIT), now)
            .is_err()
    );
}

#[test]
fn a_host_has_few_commonses_and_its_later_connection_counts() {
    let (mut commonses, members) = cluster(1);
    let link = |name: String, number| MemberLink {
        name,
        host_id: members[0].link.host_id.clone(),
        number,
    };
    let now = moment(1);
    for n in 1..MOST_OF_HOST {
        let joined = commonses.hello(&link(format!("c{n}"), 1), &hello(1), memory(0), now);
        assert!(joined.unwrap().is_some());
    }
    let refused = commonses.hello(&link("one-more".to_owned(), 1), &hello(1), memory(0), now);
    assert_eq!(refused.unwrap_err().kind, RefusalKind::Busy);
    let later = commonses.hello(&link(NAME.to_owned(), 5), &hello(1), memory(0), now);
    assert!(later.unwrap().is_some());
    assert!(members[0].queue.is_closed(), "the former connection ends");
    let former = commonses.hello(&members[0].link, &hello(1), memory(0), now);
    assert_eq!(former.unwrap_err().kind, RefusalKind::Busy);
}

#[test]
fn a_second_recruiter_waits_until_the_first_is_silent() {
    let (mut first, mut members) = cluster(1);
    let mut second = Commonses::new(2);
    let mut same = TestMember::join(&mut second, 1, 1, 0);
    second.tick(moment(0));
    first.tick(moment(LEAST_EPOCH_MS));
    members[0].receive();
    let request = members[0].requests[0];
    let mut said = hello(1);
    (said.epoch, said.initiator) = (request.epoch, request.initiator);
    second
        .hello(&same.link, &said, memory(LIMIT), moment(LEAST_EPOCH_MS))
        .unwrap();
    second.tick(moment(LEAST_EPOCH_MS));
    second.tick(moment(LEAST_EPOCH_MS + 11_000));
    same.receive();
    assert!(same.requests.is_empty(), "{:?}", same.requests);
    assert!(!second.views(0)[0].is_initiator);
    second.tick(moment(LEAST_EPOCH_MS + 12_000));
    same.receive();
    assert!(same.requests[0].epoch > request.epoch);
}

#[test]
fn hosts_have_the_same_number_everywhere_and_different_hosts_different_ones() {
    let numbers: std::collections::BTreeSet<NodeId> = (0..1000_u32)
        .map(|host| node_of_host(&format!("{host:032x}")))
        .collect();
    assert_eq!(numbers.len(), 1000);
}

proptest! {
    /// Every member's list, made of the changes alone, is the recruiter's list after each tick.
    #[test]
    fn lists_of_all_members_agree(steps in prop::collection::vec((0..4_u8, 1..6_u32), 1..60)) {
        let mut commonses = Commonses::new(3);
        let mut members: BTreeMap<u32, TestMember> = BTreeMap::new();
        for (at, (step, host)) in steps.into_iter().enumerate() {
            let now_ms = at as i64 * 100;
            match (step, members.contains_key(&host)) {
                (0, false) | (1, _) => {
                    let number = at as u64 + 1;
                    members.insert(host, TestMember::join(&mut commonses, host, number, now_ms));
                }
                (0, true) => {
                    if let Some(member) = members.remove(&host) {
                        commonses.leave(&member.link);
                    }
                }
                (2, true) => {
                    let said = hello(at as u32 + 2);
                    let link = &members[&host].link;
                    commonses.hello(link, &said, memory(LIMIT), moment(now_ms)).unwrap();
                }
                _ => {}
            }
            commonses.tick(moment(now_ms));
            let views = commonses.views(now_ms);
            let known: Vec<CommonsMember> = views
                .iter()
                .flat_map(|view| view.members.iter().map(|m| m.member.clone()))
                .collect();
            prop_assert_eq!(known.len(), members.len());
            for member in members.values_mut() {
                member.receive();
                let mut list: Vec<CommonsMember> = member.list.values().cloned().collect();
                list.sort_by(|a, b| a.host_id.cmp(&b.host_id));
                prop_assert_eq!(&list, &known);
            }
        }
    }
}
