//! Spans as OpenTelemetry gets them.

use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider};
use tidewheel_core::workflow::{Workflow, step};
use tidewheel_runner::telemetry::otel;
use tidewheel_runner::{Runner, RunnerOptions};
use tracing_subscriber::layer::SubscriberExt;

#[tokio::test]
async fn an_attempt_is_a_span_with_its_fields_and_events_and_spans_of_others_are_left_out() {
    let exporter = InMemorySpanExporter::default();
    let provider = SdkTracerProvider::builder().with_simple_exporter(exporter.clone()).build();
    let subscriber = tracing_subscriber::registry().with(otel::layer(provider.tracer("test")));
    tracing::subscriber::set_global_default(subscriber).unwrap();

    let workflow = Workflow::new("w")
        .add(step("greet", |x: i64| tracing::info_span!("of the user's").in_scope(|| x)))
        .build()
        .unwrap();
    let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
    runner.run("r", &workflow, 1_i64).await.unwrap().wait().await.unwrap();

    let spans = exporter.get_finished_spans().unwrap();
    let names: Vec<&str> = spans.iter().map(|span| span.name.as_ref()).collect();
    assert_eq!(names, ["tidewheel.execute"]);
    let get = |key: &str| {
        let found = spans[0].attributes.iter().find(|attribute| attribute.key.as_str() == key);
        found.map(|attribute| attribute.value.to_string())
    };
    let told = ["run", "node", "attempt", "outcome"].map(|key| get(key).unwrap_or_default());
    assert_eq!(told, ["r", "greet", "0", "completed"]);
    let events: Vec<&str> = spans[0].events.iter().map(|event| event.name.as_ref()).collect();
    assert_eq!(events, ["attempt begins", "attempt over"]);
}
