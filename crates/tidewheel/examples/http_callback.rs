//! A step that somebody else ends, with an HTTP request: it asks a provider for a payment and hands over its token;
//! the provider calls back when the customer has paid. Until then the step holds no thread and no slot, and the
//! program may be started again.
//!
//! `cargo run --example http_callback`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use tidewheel::prelude::*;
use tidewheel::work::Token;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::sleep;

/// What the provider is asked for.
#[derive(Clone, Debug)]
struct Asked {
    cents: u32,
    /// Whom to tell, and how: the token is part of the path.
    callback: String,
}

/// What the provider says.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Paid(String),
    Refused(String),
}

fn payments(provider: mpsc::UnboundedSender<Asked>) -> Result<Workflow, BuildErrors> {
    // It hands the work over and returns. Of what it returns only the type counts: that of the answer.
    let ask = move |context: Context, cents: u32| -> Result<String, Failure> {
        let callback = format!("/callback/{}", context.token());
        provider.send(Asked { cents, callback }).map_err(|_| Failure::new("the provider is gone"))?;
        Ok(String::new())
    };
    Workflow::new("payments")
        .add(step("pay", ask))
        .add(step("receipt", |payer: String| format!("paid by {payer}")).after("pay"))
        .policy(name("pay"), Policy::new().execution_mode(ExecutionMode::External).timeout("1h"))
        .build()
}

/// The server: whoever has a token may end what it stands for. A token is no secret, so a real one would check a
/// signature of the provider here.
fn server(runner: Runner) -> Router {
    Router::new().route("/callback/{token}", post(callback)).with_state(runner)
}

async fn callback(
    State(runner): State<Runner>,
    Path(token): Path<String>,
    Json(answer): Json<Answer>,
) -> (StatusCode, String) {
    let token: Token = match token.parse() {
        Ok(token) => token,
        Err(error) => return (StatusCode::BAD_REQUEST, format!("{error}\n")),
    };
    let told = match answer {
        Answer::Paid(payer) => runner.complete(&token, payer).await,
        Answer::Refused(why) => runner.fail(&token, Failure::new(why).code(402)).await,
    };
    match told {
        Ok(()) => (StatusCode::OK, "thank you\n".to_owned()),
        // It is over, or the step has not returned yet: whoever is too quick asks again.
        Err(error @ CommandError::NotAwaited { .. }) => (StatusCode::CONFLICT, format!("{error}\n")),
        Err(error @ CommandError::NotFound { .. }) => (StatusCode::NOT_FOUND, format!("{error}\n")),
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")),
    }
}

/// Listens on a free port of this machine.
async fn serve(runner: &Runner) -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let server = server(runner.clone());
    tokio::spawn(async move { axum::serve(listener, server).await });
    Ok(address)
}

/// Posts an answer and returns the status.
async fn request(to: SocketAddr, path: &str, answer: &Answer) -> Result<u16, Box<dyn Error>> {
    let body = serde_json::to_string(answer)?;
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: {to}\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut connection = TcpStream::connect(to).await?;
    connection.write_all(request.as_bytes()).await?;
    let mut response = String::new();
    connection.read_to_string(&mut response).await?;
    let status = response.split(' ').nth(1).ok_or("no status")?;
    Ok(status.parse()?)
}

/// Posts an answer until it is taken. A conflict may mean that the step has not returned yet.
async fn call_back(to: SocketAddr, path: &str, answer: &Answer) -> Result<u16, Box<dyn Error>> {
    for _ in 0..200 {
        let status = request(to, path, answer).await?;
        if status != StatusCode::CONFLICT {
            return Ok(status);
        }
        sleep(Duration::from_millis(10)).await;
    }
    Ok(StatusCode::CONFLICT.as_u16())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let runner = Runner::open(folder.path().join("payments.db")).await?;
    let address = serve(&runner).await?;
    let (provider, mut inbox) = mpsc::unbounded_channel();
    let workflow = payments(provider)?;
    for (id, answer) in [
        ("order-1", Answer::Paid("ada".to_owned())),
        ("order-2", Answer::Refused("the card is blocked".to_owned())),
    ] {
        let run = runner.run(id, &workflow, 1_900_u32).await?;
        let asked = inbox.recv().await.ok_or("nobody was asked")?;
        println!("{id}: the provider is asked for {} cents", asked.cents);
        let status = call_back(address, &asked.callback, &answer).await?;
        println!("{id}: the provider calls back: {answer:?}, and gets {status}");
        match run.result::<String>("receipt").await {
            Ok(receipt) => println!("{id}: {receipt}"),
            Err(error) => println!("{id}: {error}"),
        }
    }
    runner.shutdown().await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program with its server and its provider, on a database.
    async fn started(
        path: &std::path::Path,
    ) -> (Runner, SocketAddr, Workflow, mpsc::UnboundedReceiver<Asked>) {
        let runner = Runner::open(path).await.unwrap();
        let address = serve(&runner).await.unwrap();
        let (provider, inbox) = mpsc::unbounded_channel();
        (runner, address, payments(provider).unwrap(), inbox)
    }

    #[tokio::test]
    async fn a_callback_ends_the_step_once() {
        let folder = tempfile::tempdir().unwrap();
        let (runner, address, workflow, mut inbox) = started(&folder.path().join("payments.db")).await;
        let run = runner.run("order", &workflow, 5_u32).await.unwrap();
        let asked = inbox.recv().await.unwrap();
        let paid = Answer::Paid("ada".to_owned());
        assert_eq!(call_back(address, &asked.callback, &paid).await.unwrap(), 200);
        assert_eq!(run.result::<String>("receipt").await.unwrap(), "paid by ada");
        assert_eq!(run.wait().await.unwrap(), Status::Completed);
        assert_eq!(request(address, &asked.callback, &paid).await.unwrap(), 409, "it is over");
        assert_eq!(request(address, "/callback/nonsense", &paid).await.unwrap(), 400);
        let other = asked.callback.replace("order:", "stranger:");
        assert_eq!(request(address, &other, &paid).await.unwrap(), 404);
        runner.shutdown().await;
    }

    #[tokio::test]
    async fn what_the_provider_refuses_has_failed() {
        let folder = tempfile::tempdir().unwrap();
        let (runner, address, workflow, mut inbox) = started(&folder.path().join("payments.db")).await;
        let run = runner.run("order", &workflow, 5_u32).await.unwrap();
        let asked = inbox.recv().await.unwrap();
        let refused = Answer::Refused("no money".to_owned());
        assert_eq!(call_back(address, &asked.callback, &refused).await.unwrap(), 200);
        assert_eq!(run.wait().await.unwrap(), Status::Failed);
        let error = run.result::<String>("pay").await.unwrap_err();
        assert_eq!(error.to_string(), "`pay` failed: [402] no money");
        runner.shutdown().await;
    }

    #[tokio::test]
    async fn the_callback_may_come_to_the_next_life_of_the_program() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("payments.db");
        let (runner, _, workflow, mut inbox) = started(&path).await;
        let run = runner.run("order", &workflow, 5_u32).await.unwrap();
        let asked = inbox.recv().await.unwrap();
        while run.status().await.unwrap() != Status::Waiting {
            tokio::task::yield_now().await;
        }
        runner.shutdown().await;

        let (runner, address, workflow, mut inbox) = started(&path).await;
        let run = runner.start("order", &workflow).await.unwrap();
        let paid = Answer::Paid("ada".to_owned());
        assert_eq!(call_back(address, &asked.callback, &paid).await.unwrap(), 200);
        assert_eq!(run.result::<String>("receipt").await.unwrap(), "paid by ada");
        runner.shutdown().await;
        assert!(inbox.try_recv().is_err(), "the provider was not asked again");
    }
}
