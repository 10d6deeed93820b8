//! The stdin channel: a cell asks the client that sent it for a line.

use super::message::{Codec, Message};
use super::note::note;
use super::zmtp::{Event, Peer, Socket};
use anyhow::{Result, bail, ensure};
use serde_json::json;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often a waiting cell looks whether the client is still there.
const LOOK: Duration = Duration::from_millis(200);

/// For how long a question waits until its client has connected.
const PATIENCE: Duration = Duration::from_secs(2);

/// A question that waits for its answer.
#[derive(Default)]
struct Question {
    /// Who was asked; nobody if no question waits.
    asked: Option<Arc<Peer>>,
    answer: Option<String>,
    interrupted: bool,
}

/// Where answers arrive.
#[derive(Default)]
pub struct Answers {
    question: Mutex<Question>,
    changed: Condvar,
}

impl Answers {
    /// Take what a client sent on the channel.
    pub fn receive(&self, event: Event, codec: &Codec) {
        let Event::Message(peer, frames) = event else {
            return;
        };
        let message = match codec.decode(frames) {
            Ok(message) => message,
            Err(e) => return note(format_args!("a message on stdin is ignored: {e:#}")),
        };
        peer.trust();
        let mut question = self.lock();
        let expected = question
            .asked
            .as_ref()
            .is_some_and(|asked| Arc::ptr_eq(asked, &peer));
        // An answer to a question that was given up is nobody's.
        if expected && message.kind() == "input_reply" {
            question.answer = Some(message.text("value").into());
            self.changed.notify_all();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Question> {
        self.question.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The stdin channel.
pub struct Stdin {
    socket: Socket,
    codec: Arc<Codec>,
    answers: Arc<Answers>,
    turn: Mutex<()>,
}

impl Stdin {
    /// The channel on a socket whose messages go to `answers`.
    pub fn new(socket: Socket, codec: Arc<Codec>, answers: Arc<Answers>) -> Self {
        Self {
            socket,
            codec,
            answers,
            turn: Mutex::new(()),
        }
    }

    /// Ask the client that sent `request`, which came from `identity`, and wait for the answer.
    pub fn ask(
        &self,
        identity: &[u8],
        request: &Message,
        prompt: &str,
        password: bool,
    ) -> Result<String> {
        // One question at a time: answers do not say what they answer.
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let named = || self.socket.peers(identity).into_iter().next();
        // Clients without an identity cannot be told apart; a single one need not be.
        let peer = || match identity.is_empty() {
            true => self.socket.only_peer(),
            false => named().or_else(|| self.socket.only_peer()),
        };
        // A client connects its channels one after the other, and may send a cell before it is there on this one.
        let begin = Instant::now();
        let peer = loop {
            match peer() {
                Some(peer) => break peer,
                None => ensure!(
                    begin.elapsed() < PATIENCE,
                    "cannot ask for input: the client that sent this cell is not connected to the stdin channel"
                ),
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        *self.answers.lock() = Question {
            asked: Some(peer.clone()),
            ..Question::default()
        };
        let content = json!({"prompt": prompt, "password": password});
        let frames = self.codec.encode(
            &request.envelope,
            "input_request",
            &request.header,
            &json!({}),
            &content,
        );
        peer.send(Arc::new(frames));
        let answer = self.wait(&peer);
        *self.answers.lock() = Question::default();
        answer
    }

    fn wait(&self, peer: &Peer) -> Result<String> {
        let mut question = self.answers.lock();
        loop {
            if question.interrupted {
                bail!("the question was interrupted");
            }
            if let Some(answer) = question.answer.take() {
                return Ok(answer);
            }
            if peer.is_gone() {
                bail!("the client that was asked for input is gone");
            }
            question = match self.answers.changed.wait_timeout(question, LOOK) {
                Ok((question, _)) => question,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
    }

    /// Give up the question that waits, if there is one.
    pub fn interrupt(&self) {
        let mut question = self.answers.lock();
        question.interrupted = question.asked.is_some();
        self.answers.changed.notify_all();
    }

    /// Close the channel.
    pub fn close(&self) {
        self.interrupt();
        self.socket.close();
    }
}
