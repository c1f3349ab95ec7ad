//! Markers say that an artifact is there; payloads do not.
#![expect(clippy::unwrap_used, reason = "a case that cannot be set up has failed")]

use serde_json::json;
use tidewheel_core::time::Timestamp;
use tidewheel_store::jobs::{Batch, Marker, Payload};

use super::world::{World, custom, job, job_id};

/// A marker is what says that an artifact is there.
pub fn c_38_a_marker_is_there_for_its_artifact_only(world: World) {
    world.put(&[job("p")]);
    world.commit(Batch { markers: vec![marker("p", "acme.exec", "k1")], ..Batch::default() });
    let has = |type_id: &str, key: &str, of: Option<&[_]>| world.other.has_marker(type_id, key, of).unwrap();
    assert!(has("acme.exec", "k1", None));
    assert!(has("acme.exec", "k1", Some(&[job_id("x"), job_id("p")])));
    assert!(!has("acme.exec", "k1", Some(&[job_id("x")])));
    assert!(!has("acme.exec", "k1", Some(&[])));
    assert!(!has("acme.exec", "k", None));
    assert!(!has("acme", "k1", None));
    world.commit(Batch { unmarked: vec![(job_id("x"), custom("acme.exec", "k1"))], ..Batch::default() });
    assert!(has("acme.exec", "k1", None));
    world.commit(Batch { unmarked: vec![(job_id("p"), custom("acme.exec", "k1"))], ..Batch::default() });
    assert!(!has("acme.exec", "k1", None));
}

/// Names of artifacts may be anything; none gets anywhere else.
pub fn hostile_names_of_artifacts_stay_apart(world: World) {
    world.put(&[job("p")]);
    let long = "ü".repeat(60);
    let names = ["../../x", "a/b", ".", "..", "-", "a\nb", long.as_str()];
    for name in names {
        assert!(!world.other.has_marker(name, name, None).unwrap(), "{name:?}");
        let payload = Payload {
            job_id: job_id("p"),
            type_id: name.to_owned(),
            key: name.to_owned(),
            value: json!({ "name": name }),
        };
        world.commit(Batch {
            markers: vec![marker("p", name, name)],
            payloads: vec![payload],
            ..Batch::default()
        });
    }
    for name in names {
        assert!(world.other.has_marker(name, name, None).unwrap(), "{name:?}");
        assert_eq!(world.other.payload(name, name, None).unwrap(), Some(json!({ "name": name })));
    }
    // Nothing can be there under a name that no file can have.
    assert!(!world.other.has_marker(&"x".repeat(10_000), "k", None).unwrap());
    assert_eq!(world.other.payload(&"x".repeat(10_000), "k", None).unwrap(), None);
}

/// A payload alone does not make an artifact.
pub fn c_39_a_payload_is_not_readiness(world: World) {
    world.put(&[job("p")]);
    world.commit(Batch { payloads: vec![payload("p", 1)], ..Batch::default() });
    assert!(!world.other.has_marker("t", "k", None).unwrap());
    assert_eq!(world.other.payload("t", "k", None).unwrap(), None);
}

/// The payload of the newest marker counts, and none if that one has none.
pub fn c_40_the_payload_of_the_newest_marker_counts(world: World) {
    world.put(&[job("p1"), job("p2"), job("p0")]);
    world.commit(Batch {
        markers: vec![marker("p1", "t", "k")],
        payloads: vec![payload("p1", 1)],
        ..Batch::default()
    });
    assert_eq!(world.other.payload("t", "k", None).unwrap(), Some(json!({ "n": 1 })));
    world.commit(Batch {
        markers: vec![marker("p2", "t", "k")],
        payloads: vec![payload("p2", 2)],
        ..Batch::default()
    });
    assert_eq!(world.other.payload("t", "k", None).unwrap(), Some(json!({ "n": 2 })));
    assert_eq!(world.other.payload("t", "k", Some(&[job_id("p1")])).unwrap(), Some(json!({ "n": 1 })));
    world.commit(Batch { markers: vec![marker("p0", "t", "k")], ..Batch::default() });
    assert_eq!(world.other.payload("t", "k", None).unwrap(), None);
    world.commit(Batch { unmarked: vec![(job_id("p0"), custom("t", "k"))], ..Batch::default() });
    assert_eq!(world.other.payload("t", "k", None).unwrap(), Some(json!({ "n": 2 })));
}

fn marker(job: &str, type_id: &str, key: &str) -> Marker {
    Marker {
        job_id: job_id(job),
        type_id: type_id.to_owned(),
        key: key.to_owned(),
        written_at: Timestamp::from_millis(1_700_000_000_000),
    }
}

fn payload(job: &str, n: u32) -> Payload {
    Payload { job_id: job_id(job), type_id: "t".to_owned(), key: "k".to_owned(), value: json!({ "n": n }) }
}
