//! `oncebox healthcheck` against an admin listener of our own.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::thread;

use crate::bed::{oncebox, oncebox_in};

/// Answers requests for `/readyz` as a ready server does, and all others not at all.
fn ready() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, mut head) = (stream.unwrap(), [0; 4096]);
            let length = stream.read(&mut head).unwrap();
            if head[..length].starts_with(b"GET /readyz ") {
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nready").unwrap();
            }
        }
    });
    address
}

#[test]
fn a_broken_configuration_does_not_hide_the_address() {
    let address = ready();
    for text in [
        format!("[server]\nadmin_listen = \"{address}\"\nno_such_key = 1\n"),
        format!("[server]\nadmin_listen = \"{address}\"\n[store]\nurl = \n"),
        format!(
            "[server]\nadmin_listen = \"{address}\"\n[sources.a]\nprovider = \"stripe\"\n\
             secrets = [\"env:NO_SUCH\"]\n"
        ),
    ] {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("oncebox.toml"), text).unwrap();
        oncebox_in(dir.path(), &["healthcheck"], b"").exits(0).prints("ready");
    }
}

#[test]
fn a_url_may_be_an_address() {
    let address = ready();
    for url in [format!("{address}"), format!("http://{address}"), format!("http://{address}/")] {
        oncebox(&["healthcheck", "--url", &url]).exits(0).prints("ready");
    }
    oncebox(&["healthcheck", "--url", &format!("{address}/livez")]).exits(1);
}

#[test]
fn it_says_why_there_is_no_answer() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    oncebox(&["healthcheck", "--url", &free.to_string()]).exits(1).tells("refused");
    oncebox(&["healthcheck", "--url", "http://"]).exits(1).tells("is no URL");
    oncebox(&["healthcheck", "--config", "no-such-file"]).exits(1).tells("no-such-file");
}
