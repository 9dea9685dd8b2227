//! Keys of a configuration, derived from its type, so that no separate list has to be maintained.

use serde::de::value::{Error, MapDeserializer};
use serde::de::{DeserializeOwned, Deserializer, Error as _, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;
use std::cell::Cell;
use std::collections::BTreeMap;

/// Type of value that a key accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Text: names, durations, sizes, paths.
    Text,
    /// A list of values.
    List,
    /// A table with arbitrary keys.
    Map,
    /// A number or a boolean.
    Other,
}

/// Returns every key of the configuration `T` with its tables, like `["ship", "rate"]`.
#[must_use]
pub fn keys<T: DeserializeOwned>() -> BTreeMap<Vec<&'static str>, Kind> {
    let (mut found, mut to_ask) = (BTreeMap::new(), vec![Vec::new()]);
    while let Some(path) = to_ask.pop() {
        let asked = Cell::new(RequestedKind::Other);
        let probe = Probe {
            path: &path,
            asked: &asked,
        };
        // This call always fails; it is made only to record the requested type.
        let _ = T::deserialize(probe);
        let kind = match asked.get() {
            RequestedKind::Fields(names) => {
                let below = |name: &&'static str| [&path[..], &[*name]].concat();
                to_ask.extend(names.iter().map(below));
                continue;
            }
            RequestedKind::Text => Kind::Text,
            RequestedKind::List => Kind::List,
            RequestedKind::Map => Kind::Map,
            RequestedKind::Other => Kind::Other,
        };
        found.insert(path, kind);
    }
    found
}

/// Kind of value that a Rust type asked its deserializer for.
#[derive(Clone, Copy, Debug)]
enum RequestedKind {
    Fields(&'static [&'static str]),
    Text,
    List,
    Map,
    Other,
}

/// Deserializer that records the kind of value requested for the key at `path`, and provides no value.
#[derive(Clone, Copy)]
struct Probe<'a> {
    path: &'a [&'static str],
    asked: &'a Cell<RequestedKind>,
}

impl Probe<'_> {
    fn answer<'de, V: Visitor<'de>>(
        self,
        visitor: V,
        asked: RequestedKind,
    ) -> Result<V::Value, Error> {
        if let Some((first, rest)) = self.path.split_first() {
            let within = Probe { path: rest, ..self };
            return visitor.visit_map(MapDeserializer::new(std::iter::once((*first, within))));
        }
        self.asked.set(asked);
        Err(Error::custom("only asked"))
    }
}

impl<'de> Deserializer<'de> for Probe<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.answer(visitor, RequestedKind::Other)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.answer(visitor, RequestedKind::Fields(fields))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.answer(visitor, RequestedKind::Map)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.answer(visitor, RequestedKind::List)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.answer(visitor, RequestedKind::Text)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.answer(visitor, RequestedKind::Text)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.answer(visitor, RequestedKind::Text)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char bytes byte_buf unit unit_struct tuple tuple_struct identifier
        ignored_any
    }
}

impl IntoDeserializer<'_, Error> for Probe<'_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}
