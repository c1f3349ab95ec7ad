//! Our spans as those of OpenTelemetry. Who exports them where is up to the program, which brings its tracer.

use opentelemetry::trace::Tracer;
use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;

use super::table::TARGET;

/// Returns a layer that gives a tracer the spans and events of Tidewheel, and nothing else.
///
/// ```
/// # mod tidewheel { pub use tidewheel_runner::*; }
/// use opentelemetry::trace::TracerProvider;
/// use opentelemetry_sdk::trace::SdkTracerProvider;
/// use tidewheel::telemetry::otel;
/// use tracing_subscriber::layer::SubscriberExt;
///
/// let provider = SdkTracerProvider::builder().build(); // with an exporter of your choice
/// let subscriber = tracing_subscriber::registry().with(otel::layer(provider.tracer("orders")));
/// tracing::subscriber::set_global_default(subscriber)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn layer<S, T>(tracer: T) -> impl Layer<S>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
    T: Tracer + Send + Sync + 'static,
    T::Span: Send + Sync,
{
    tracing_opentelemetry::layer()
        .with_tracer(tracer)
        .with_filter(filter_fn(|metadata| metadata.target() == TARGET))
}
