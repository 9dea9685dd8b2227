//! Users and groups of this host, from /etc/passwd and /etc/group.

use std::fs;

/// User of this host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Name of the user.
    pub name: String,
    /// Number of the user.
    pub uid: u32,
    /// Number of the user's own group.
    pub gid: u32,
    /// Numbers of the groups that name the user as a member.
    pub groups: Vec<u32>,
}

impl Account {
    /// Finds the first user whose name and number are wanted; `None` if there is none.
    #[must_use]
    pub fn find(is_wanted: impl Fn(&str, u32) -> bool) -> Option<Self> {
        let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
        Self::parse(&passwd, &group_file(), is_wanted)
    }

    /// Finds the first wanted user in the text of passwd(5), and their groups in the text of group(5).
    #[must_use]
    pub fn parse(passwd: &str, group: &str, is_wanted: impl Fn(&str, u32) -> bool) -> Option<Self> {
        passwd.lines().find_map(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            let [name, _, uid, gid, ..] = fields.as_slice() else {
                return None;
            };
            let (uid, gid) = (uid.parse().ok()?, gid.parse().ok()?);
            let member = |members: &str| members.split(',').any(|member| member == *name);
            is_wanted(name, uid).then(|| Self {
                name: (*name).to_owned(),
                uid,
                gid,
                groups: groups(group)
                    .filter(|of| member(of.2))
                    .map(|of| of.1)
                    .collect(),
            })
        })
    }
}

/// Text of /etc/group; empty if it cannot be read.
#[must_use]
pub fn group_file() -> String {
    fs::read_to_string("/etc/group").unwrap_or_default()
}

/// Name, number and members of each group in the text of group(5).
pub fn groups(text: &str) -> impl Iterator<Item = (&str, u32, &str)> {
    text.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let (name, _, gid) = (fields.next()?, fields.next()?, fields.next()?);
        Some((name, gid.parse().ok()?, fields.next().unwrap_or_default()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str =
        "root:x:0:0:root:/root:/bin/sh\ntorn\nada:x:1000:100::/home/ada:/bin/sh\nx:x:a:b\n";
    const GROUP: &str =
        "users:x:100:\ngleaner:x:990:bob,ada\ninput:x:104:bob\nadam:x:7:adam\ntorn:x\n";

    #[test]
    fn users_have_the_groups_that_name_them() {
        let named = |name: &str| Account::parse(PASSWD, GROUP, |found, _| found == name);
        let ada = Account {
            name: "ada".to_owned(),
            uid: 1000,
            gid: 100,
            groups: vec![990],
        };
        assert_eq!(named("ada"), Some(ada));
        let root = Account::parse(PASSWD, GROUP, |_, uid| uid == 0);
        assert_eq!(root.map(|root| root.name), Some("root".to_owned()));
        assert_eq!(named("x"), None);
    }

    proptest::proptest! {
        #[test]
        fn no_passwd_is_too_strange(text in "(?s)[a-z0-9:,\n\\PC]{0,200}") {
            let _ = Account::parse(&text, &text, |_, _| true);
        }
    }
}
