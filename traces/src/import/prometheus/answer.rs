//! Parses answers of Prometheus' HTTP API (<https://prometheus.io/docs/prometheus/latest/querying/api/>).

use serde::Deserialize;
use std::collections::BTreeMap;

/// A series and some of its samples.
#[derive(Debug, PartialEq)]
pub(super) struct Matrix<'a> {
    pub(super) labels: BTreeMap<String, String>,
    /// Samples: time in seconds, and value as text.
    values: Vec<(f64, &'a str)>,
}

/// Outcome of a query.
#[derive(Debug, PartialEq)]
pub(super) enum Answer<'a> {
    Series(Vec<Matrix<'a>>),
    /// The server refused the query; `kind` is one of the API's error types.
    Refused {
        kind: String,
        why: String,
    },
    /// The server warns that data may be missing.
    Partial(String),
}

#[derive(Deserialize)]
struct Document<'a> {
    #[serde(borrow)]
    data: Option<Data<'a>>,
    #[serde(rename = "errorType", default)]
    error_type: String,
    #[serde(default)]
    error: String,
    #[serde(default)]
    warnings: Vec<String>,
    status: String,
}

#[derive(Deserialize)]
struct Data<'a> {
    #[serde(rename = "resultType")]
    result_type: String,
    #[serde(borrow)]
    result: Vec<SeriesResult<'a>>,
}

#[derive(Deserialize)]
struct SeriesResult<'a> {
    metric: BTreeMap<String, String>,
    #[serde(borrow, default)]
    values: Vec<(f64, &'a str)>, // numbers: never escaped
}

impl<'a> Answer<'a> {
    /// Parses the answer to a range query, or to a query that selects a range of samples.
    ///
    /// # Errors
    /// Description of the fault.
    pub(super) fn of(text: &'a [u8]) -> Result<Self, String> {
        let document: Document<'_> = serde_json::from_slice(text).map_err(|e| e.to_string())?;
        if document.status != "success" {
            return Ok(Self::Refused {
                kind: document.error_type,
                why: document.error,
            });
        }
        if let Some(warning) = document.warnings.into_iter().next() {
            return Ok(Self::Partial(warning));
        }
        let data = document.data.ok_or("there are no data")?;
        if data.result_type != "matrix" {
            return Err(format!("{:?} instead of a matrix", data.result_type));
        }
        let series = data.result.into_iter().map(|found| Matrix {
            labels: found.metric,
            values: found.values,
        });
        Ok(Self::Series(series.collect()))
    }
}

impl Matrix<'_> {
    /// The label `name`; empty if it is missing, as in Prometheus.
    pub(super) fn label(&self, name: &str) -> &str {
        self.labels.get(name).map_or("", String::as_str)
    }

    /// Times in ms, and values.
    ///
    /// # Errors
    /// Description of the fault.
    pub(super) fn samples(&self) -> impl Iterator<Item = Result<(i64, f64), String>> {
        self.values.iter().map(|(time_s, text)| {
            let value = text.parse().map_err(|_| format!("a value is {text:?}"))?;
            // By the API's definition these are whole ms, and far below 2⁵³, so that rounding is exact.
            Ok(((time_s * 1000.0).round() as i64, value))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// An answer of Prometheus 2.42, with names changed.
    const MATRIX: &[u8] = br##"{"status":"success","data":{"resultType":"matrix","result":[
        {"metric":{"__name__":"node_load1","instance":"otter:9100","job":"node"},
         "values":[[1795302063.053,"0.33"],[1795302064.053,"0.3"],[1795302065,"NaN"],[1795302066.053,"+Inf"]]},
        {"metric":{"__name__":"node_uname_info","domainname":"(none)","instance":"otter:9100","job":"node",
         "version":"#1 SMP \u003cPREEMPT\u003e"},"values":[[1795302063.053,"1"]]}]}}"##;

    #[test]
    fn samples_with_their_own_times() {
        let Answer::Series(found) = Answer::of(MATRIX).unwrap() else {
            panic!("no series");
        };
        assert_eq!(found[0].label("instance"), "otter:9100");
        assert_eq!(found[0].label("mode"), "");
        assert_eq!(found[1].label("version"), "#1 SMP <PREEMPT>");
        let samples: Result<Vec<_>, _> = found[0].samples().collect();
        let samples = samples.unwrap();
        assert_eq!(
            samples[..2],
            [(1_795_302_063_053, 0.33), (1_795_302_064_053, 0.3)]
        );
        assert_eq!(samples[2].0, 1_795_302_065_000);
        assert!(samples[2].1.is_nan() && samples[3].1.is_infinite());
        let empty = br#"{"status":"success","data":{"resultType":"matrix","result":[]}}"#;
        assert_eq!(Answer::of(empty), Ok(Answer::Series(Vec::new())));
    }

    #[test]
    fn what_is_not_given_is_said() {
        let refused = br#"{"status":"error","errorType":"bad_data","error":"invalid parameter \"query\": 1:12: parse error"}"#;
        let Answer::Refused { kind, why } = Answer::of(refused).unwrap() else {
            panic!("not refused");
        };
        assert_eq!(kind, "bad_data");
        assert!(why.ends_with("\"query\": 1:12: parse error"), "{why}");
        let partial = br#"{"status":"success","warnings":["store 2 is gone"],"data":{"resultType":"matrix","result":[]}}"#;
        assert_eq!(
            Answer::of(partial),
            Ok(Answer::Partial("store 2 is gone".to_owned()))
        );
        let vector = br#"{"status":"success","data":{"resultType":"vector","result":[]}}"#;
        for text in [
            &b""[..],
            b"<html>",
            b"{}",
            b"[]",
            br#"{"status":"success"}"#,
            vector,
        ] {
            assert!(
                Answer::of(text).is_err(),
                "{}",
                String::from_utf8_lossy(text)
            );
        }
        let text = String::from_utf8_lossy(MATRIX).replace("\"0.33\"", "\"much\"");
        let Answer::Series(found) = Answer::of(text.as_bytes()).unwrap() else {
            panic!("no series");
        };
        assert!(
            found[0]
                .samples()
                .next()
                .unwrap()
                .unwrap_err()
                .contains("much")
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn no_damage_panics(at in 0..MATRIX.len(), bytes in proptest::collection::vec(any::<u8>(), 0..8)) {
            let mut text = MATRIX.to_vec();
            text.splice(at..(at + bytes.len()).min(MATRIX.len()), bytes);
            if let Ok(Answer::Series(found)) = Answer::of(&text) {
                for series in found {
                    series.samples().for_each(drop);
                }
            }
        }
    }
}
