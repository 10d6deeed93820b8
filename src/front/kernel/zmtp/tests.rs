//! Tests of whole sockets.

use super::client::Client;
use super::frame::Item;
use super::outbox::PATIENCE;
use super::{Endpoint, Event, Frames, Kind, Socket};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

fn anywhere() -> Endpoint {
    Endpoint::Tcp("127.0.0.1".into(), 0)
}

fn message(parts: &[&[u8]]) -> Frames {
    parts.iter().map(|p| p.to_vec()).collect()
}

fn echo(event: Event) {
    if let Event::Message(peer, frames) = event {
        assert!(peer.send(Arc::new(frames)));
    }
}

#[test]
fn each_client_gets_its_own_answers() {
    let socket = Socket::bind(&anywhere(), Kind::Router, echo).unwrap();
    let connect = |kind| Client::connect(socket.endpoint(), kind, b"same");
    // Two with the same identity do not hinder each other; REQ is what heartbeats use.
    let (mut one, mut two) = (connect("DEALER"), connect("REQ"));
    for i in 0..100u8 {
        one.send(&message(&[b"one", &[i]]));
        two.send(&message(&[b"", b"two", &[i; 300]]));
    }
    for i in 0..100u8 {
        assert_eq!(one.receive(), message(&[b"one", &[i]]));
        assert_eq!(two.receive(), message(&[b"", b"two", &[i; 300]]));
    }
    assert_eq!(socket.peers(b"same").len(), 2);
    assert!(socket.only_peer().is_none());
    drop(two);
    let end = Instant::now() + Duration::from_secs(5);
    while socket.only_peer().is_none() {
        assert!(Instant::now() < end);
    }
}

#[test]
fn subscribers_get_what_they_want() {
    let (seen, subscribed) = mpsc::channel();
    let socket = Socket::bind(&anywhere(), Kind::Publisher, move |event| {
        if let Event::Subscribed(peer, topic) = event {
            peer.send(Arc::new(vec![b"welcome".to_vec(), topic.clone()]));
            seen.send(topic).unwrap();
        }
    })
    .unwrap();
    let mut all = Client::connect(socket.endpoint(), "SUB", b"");
    all.send(&message(&[b"\x01"]));
    let mut some = Client::connect(socket.endpoint(), "SUB", b"");
    some.command("SUBSCRIBE", b"ab");
    some.send(&message(&[b"\x01x"]));
    for _ in 0..3 {
        subscribed.recv_timeout(Duration::from_secs(5)).unwrap();
    }
    assert_eq!(all.receive(), message(&[b"welcome", b""]));
    assert_eq!(some.receive(), message(&[b"welcome", b"ab"]));
    assert_eq!(some.receive(), message(&[b"welcome", b"x"]));
    let publish = |topic: &str| socket.publish(Arc::new(message(&[topic.as_bytes()])));
    ["a", "abc", "x", ""].into_iter().for_each(publish);
    for expected in ["a", "abc", "x", ""] {
        assert_eq!(all.receive(), message(&[expected.as_bytes()]));
    }
    assert_eq!(some.receive(), message(&[b"abc"]));
    assert_eq!(some.receive(), message(&[b"x"]));
    some.command("CANCEL", b"ab");
    some.send(&message(&[b"\x00x"]));
    some.command("SUBSCRIBE", b"end");
    subscribed.recv_timeout(Duration::from_secs(5)).unwrap();
    ["abc", "x", "end"].into_iter().for_each(publish);
    assert_eq!(some.receive(), message(&[b"welcome", b"end"]));
    assert_eq!(some.receive(), message(&[b"end"]));
}

#[test]
fn pings_are_answered() {
    let socket = Socket::bind(&anywhere(), Kind::Router, echo).unwrap();
    let mut client = Client::connect(socket.endpoint(), "DEALER", b"");
    client.command("PING", b"\x00\x0acontext");
    let answer = client.next().unwrap();
    assert_eq!(answer, Item::Command("PONG".into(), b"context".to_vec()));
}

#[test]
fn closing_lets_clients_and_the_port_go() {
    let socket = Socket::bind(&anywhere(), Kind::Router, echo).unwrap();
    let endpoint = socket.endpoint().clone();
    assert!(Socket::bind(&endpoint, Kind::Router, echo).is_err());
    let mut client = Client::connect(&endpoint, "DEALER", b"");
    client.send(&message(&[b"x"]));
    client.receive();
    drop(socket);
    assert!(client.next().is_err());
    let end = Instant::now() + Duration::from_secs(5);
    while Socket::bind(&endpoint, Kind::Router, echo).is_err() {
        assert!(Instant::now() < end);
    }
}

#[test]
fn everything_is_written_after_draining() {
    // More than the system buffers, so that it is still being written when nothing waits any more.
    let (sent, waiting) = mpsc::channel();
    let socket = Socket::bind(&anywhere(), Kind::Router, move |event| {
        if let Event::Message(peer, _) = event {
            assert!(peer.send(Arc::new(vec![vec![7; 50 << 20]])));
            sent.send(()).unwrap();
        }
    })
    .unwrap();
    let mut client = Client::connect(socket.endpoint(), "DEALER", b"");
    client.send(&message(&[b"go"]));
    waiting.recv_timeout(Duration::from_secs(10)).unwrap();
    let reading = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        client.receive()
    });
    socket.drain(Duration::from_secs(10));
    drop(socket);
    assert!(reading.join().unwrap() == [vec![7; 50 << 20]]);
}

#[test]
#[cfg(unix)]
fn ipc_works_and_cleans_up_but_touches_no_files() {
    let folder = std::env::temp_dir().join(format!("zmtp-{}", super::super::id::fresh()));
    std::fs::create_dir(&folder).unwrap();
    let endpoint = Endpoint::Ipc(folder.join("socket"));
    for _ in 0..2 {
        // What a kernel that was killed left behind.
        drop(std::os::unix::net::UnixListener::bind(folder.join("socket")).unwrap());
        let socket = Socket::bind(&endpoint, Kind::Router, echo).unwrap();
        let mut client = Client::connect(&endpoint, "DEALER", b"me");
        client.send(&message(&[b"x"]));
        assert_eq!(client.receive(), message(&[b"x"]));
        assert!(Socket::bind(&endpoint, Kind::Router, echo).is_err());
        drop(socket);
        assert!(!folder.join("socket").exists());
    }
    std::fs::write(folder.join("socket"), "mine").unwrap();
    assert!(Socket::bind(&endpoint, Kind::Router, echo).is_err());
    assert!(folder.join("socket").exists());
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_client_does_not_subscribe_for_ever() {
    let socket = Socket::bind(&anywhere(), Kind::Publisher, |_| {}).unwrap();
    let mut client = Client::connect(socket.endpoint(), "SUB", b"");
    for _ in 0..256 {
        client.command("SUBSCRIBE", b"a");
        client.command("CANCEL", b"a");
    }
    let until = Instant::now() + Duration::from_secs(5);
    while socket.only_peer().is_none() {
        assert!(Instant::now() < until);
    }
    client.command("SUBSCRIBE", b"a");
    assert!(client.next().is_err(), "it was not cut off");
}

#[test]
#[cfg(unix)]
fn a_client_does_not_ping_for_ever_without_reading() {
    // A socket of this kind keeps little for a client that does not read.
    let file = std::env::temp_dir().join(format!("zmtp-{}", super::super::id::fresh()));
    let socket = Socket::bind(&Endpoint::Ipc(file), Kind::Router, echo).unwrap();
    let mut client = Client::connect(socket.endpoint(), "DEALER", b"");
    let all_sent = (0..200_000).all(|_| client.command("PING", b"\x00\x00context"));
    assert!(!all_sent, "it was not cut off");
}

#[test]
fn subscribers_that_do_not_read_are_waited_for_together() {
    let (seen, subscribed) = mpsc::channel();
    let socket = Socket::bind(&anywhere(), Kind::Publisher, move |event| {
        if let Event::Subscribed(..) = event {
            seen.send(()).unwrap();
        }
    })
    .unwrap();
    let clients: Vec<_> = (0..8)
        .map(|_| {
            let mut client = Client::connect(socket.endpoint(), "SUB", b"");
            client.send(&message(&[b"\x01"]));
            subscribed.recv_timeout(Duration::from_secs(5)).unwrap();
            client
        })
        .collect();
    // What the system does not keep for them, and more than waits here.
    let large = Arc::new(vec![vec![0; 32 << 20]]);
    let begin = Instant::now();
    for _ in 0..4 {
        socket.publish(large.clone());
    }
    // One after the other, they take the patience with one of them eight times.
    assert!(begin.elapsed() < 4 * PATIENCE);
    drop(clients);
}

#[test]
fn clients_without_the_key_make_room() {
    let socket = Socket::bind(&anywhere(), Kind::Router, echo).unwrap();
    let mut strangers: Vec<_> = (0..32)
        .map(|_| Client::connect(socket.endpoint(), "DEALER", b""))
        .collect();
    let mut one = Client::connect(socket.endpoint(), "DEALER", b"");
    one.send(&message(&[b"here"]));
    assert_eq!(one.receive(), message(&[b"here"]));
    assert!(
        strangers[0].next().is_err(),
        "the oldest has its place still"
    );
}
