//! Lists of members from several recruiters as one list.

use gleaner_schemas::commons::{CommonsMember, MembersChange};
use std::collections::BTreeMap;

/// List of one recruiter.
#[derive(Clone, Debug, Default)]
struct RecruiterList {
    is_linked: bool,
    /// Members by number; `None` before the complete list.
    members: Option<BTreeMap<u32, CommonsMember>>,
}

/// Lists of all recruiters. A member counts while one linked recruiter lists it. If no recruiter is linked, the
/// last members stay.
#[derive(Clone, Debug)]
pub(super) struct MemberLists {
    of_recruiters: Vec<RecruiterList>,
    current: Vec<CommonsMember>,
}

impl MemberLists {
    /// Starts without members.
    pub(super) fn new(recruiters_count: usize) -> Self {
        Self {
            of_recruiters: vec![RecruiterList::default(); recruiters_count],
            current: Vec::new(),
        }
    }

    /// Takes over a message of a linked recruiter. Returns the members if they have changed.
    pub(super) fn change(
        &mut self,
        recruiter: usize,
        change: MembersChange,
    ) -> Option<&[CommonsMember]> {
        let list = self.of_recruiters.get_mut(recruiter)?;
        list.is_linked = true;
        if change.is_complete {
            list.members = Some(BTreeMap::new());
        }
        let members = list.members.get_or_insert_default();
        for node in &change.gone {
            members.remove(node);
        }
        for member in change.present {
            members.insert(member.node, member);
        }
        self.renew()
    }

    /// Notes that a recruiter is no longer linked. Returns the members if they have changed.
    pub(super) fn unlink(&mut self, recruiter: usize) -> Option<&[CommonsMember]> {
        *self.of_recruiters.get_mut(recruiter)? = RecruiterList::default();
        self.renew()
    }

    fn renew(&mut self) -> Option<&[CommonsMember]> {
        let mut all: BTreeMap<u32, &CommonsMember> = BTreeMap::new();
        let linked = self.of_recruiters.iter().filter(|list| list.is_linked);
        let mut lists = linked.filter_map(|list| list.members.as_ref()).peekable();
        lists.peek()?;
        for member in lists.flat_map(BTreeMap::values) {
            let known = all.entry(member.node).or_insert(member);
            if known.generation < member.generation {
                *known = member;
            }
        }
        let members: Vec<CommonsMember> = all.into_values().cloned().collect();
        if members == self.current {
            return None;
        }
        self.current = members;
        Some(&self.current)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(node: u32, generation: u32) -> CommonsMember {
        CommonsMember {
            node,
            generation,
            ..CommonsMember::default()
        }
    }

    fn change(is_complete: bool, present: &[(u32, u32)], gone: &[u32]) -> MembersChange {
        MembersChange {
            is_complete,
            present: present.iter().map(|(n, g)| member(*n, *g)).collect(),
            gone: gone.to_vec(),
        }
    }

    fn known(lists: &MemberLists) -> Vec<(u32, u32)> {
        let members = lists.current.iter();
        members.map(|m| (m.node, m.generation)).collect()
    }

    #[test]
    fn changes_follow_a_complete_list_and_the_last_members_stay_without_a_recruiter() {
        let mut lists = MemberLists::new(1);
        assert!(
            lists
                .change(0, change(true, &[(1, 1), (2, 1)], &[]))
                .is_some()
        );
        assert!(lists.change(0, change(false, &[(3, 1)], &[1])).is_some());
        assert_eq!(known(&lists), [(2, 1), (3, 1)]);
        assert!(lists.change(0, change(false, &[(3, 1)], &[1])).is_none());
        assert!(lists.unlink(0).is_none());
        assert_eq!(known(&lists), [(2, 1), (3, 1)]);
        assert!(lists.change(0, change(true, &[(3, 2)], &[])).is_some());
        assert_eq!(known(&lists), [(3, 2)]);
    }

    #[test]
    fn a_member_counts_while_one_recruiter_lists_it() {
        let mut lists = MemberLists::new(2);
        lists.change(0, change(true, &[(1, 5), (2, 1)], &[]));
        lists.change(1, change(true, &[(1, 4), (3, 1)], &[]));
        assert_eq!(known(&lists), [(1, 5), (2, 1), (3, 1)]);
        lists.unlink(0);
        assert_eq!(known(&lists), [(1, 4), (3, 1)]);
        assert!(lists.change(7, change(true, &[], &[])).is_none());
    }
}
