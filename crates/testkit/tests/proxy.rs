//! The proxy's faults, against a server that repeats what it hears and remembers it.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use oncebox_testkit::proxy::Proxy;
use oncebox_testkit::wait;

#[test]
fn it_passes_bytes_both_ways() {
    let echo = Echo::start();
    let proxy = Proxy::new(echo.address);
    let mut client = client(&proxy);
    assert_eq!(say(&mut client, "hello"), "hello");
    assert_eq!(say(&mut client, "again"), "again");
}

#[test]
fn a_cut_ends_connections_and_leaves_the_door_open() {
    let echo = Echo::start();
    let proxy = Proxy::new(echo.address);
    let mut cut = client(&proxy);
    assert_eq!(say(&mut cut, "hello"), "hello");
    proxy.cut();
    assert!(is_closed(&mut cut));
    assert_eq!(say(&mut client(&proxy), "hello"), "hello");
}

#[test]
fn refused_connections_are_refused_and_later_accepted() {
    let echo = Echo::start();
    let proxy = Proxy::new(echo.address);
    let mut before = client(&proxy);
    assert_eq!(say(&mut before, "before"), "before");

    proxy.refuse();
    let refused = TcpStream::connect(proxy.addr()).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    assert_eq!(say(&mut before, "still"), "still");

    proxy.accept();
    assert_eq!(say(&mut client(&proxy), "after"), "after");
}

#[test]
fn a_stall_holds_bytes_until_they_flow() {
    let echo = Echo::start();
    let proxy = Proxy::new(echo.address);
    let mut client = client(&proxy);
    assert_eq!(say(&mut client, "hello"), "hello");

    proxy.stall();
    client.write_all(b"late").unwrap();
    assert!(!echo.heard().contains("late"));
    proxy.flow();
    assert_eq!(read(&mut client, 4), "late");
}

#[test]
fn a_cut_after_a_pattern_delivers_it_and_loses_the_answer() {
    let echo = Echo::start();
    let proxy = Proxy::new(echo.address);
    let (mut other, mut cut) = (client(&proxy), client(&proxy));
    proxy.cut_after_client_bytes(b"COMMIT");

    assert_eq!(say(&mut cut, "INSERT;COM"), "INSERT;COM");
    cut.write_all(b"MIT;").unwrap();
    assert!(is_closed(&mut cut));
    proxy.wait_for_cuts(1);
    wait::until("the server heard it", || echo.heard().contains("INSERT;COMMIT;"));

    assert_eq!(say(&mut other, "COMMIT"), "COMMIT", "armed for once only");
}

#[test]
fn a_cut_before_a_pattern_keeps_it_from_the_server() {
    let echo = Echo::start();
    let proxy = Proxy::new(echo.address);
    let mut cut = client(&proxy);
    proxy.cut_before_client_bytes(b"COMMIT");
    assert_eq!(say(&mut cut, "INSERT;"), "INSERT;");
    cut.write_all(b"COMMIT").unwrap();
    assert!(is_closed(&mut cut));
    proxy.wait_for_cuts(1);
    assert_eq!(echo.heard(), "INSERT;");
}

#[test]
fn a_swallowed_reply_leaves_the_connection_mute() {
    let echo = Echo::start();
    let proxy = Proxy::new(echo.address);
    let mut mute = client(&proxy);
    assert_eq!(say(&mut mute, "one"), "one");

    proxy.swallow_reply_to(b"two");
    mute.write_all(b"two").unwrap();
    proxy.wait_for_swallowed_reply();
    mute.write_all(b"three").unwrap();
    wait::until("the server heard all", || echo.heard() == "onetwothree");
    assert_eq!(say(&mut client(&proxy), "four"), "four");

    proxy.cut();
    let mut rest = String::new();
    mute.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "", "nothing came after the gap");
}

#[test]
fn a_server_that_is_down_closes_the_connection() {
    let address = Echo::start().address;
    let proxy = Proxy::new(("127.0.0.1", oncebox_testkit::ports::free_port()));
    assert!(is_closed(&mut client(&proxy)));
    assert!(proxy.url(&format!("postgres://u:p@{address}/db?x=@")).contains("/db?x=@"));
}

struct Echo {
    address: SocketAddr,
    heard: Arc<Mutex<String>>,
}

impl Echo {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let heard = Arc::new(Mutex::new(String::new()));
        let memory = Arc::clone(&heard);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let memory = Arc::clone(&memory);
                std::thread::spawn(move || repeat(stream, &memory));
            }
        });
        Self { address, heard }
    }

    fn heard(&self) -> String {
        self.heard.lock().unwrap().clone()
    }
}

fn repeat(mut stream: TcpStream, memory: &Mutex<String>) {
    let mut chunk = [0; 1024];
    while let Ok(length @ 1..) = stream.read(&mut chunk) {
        memory.lock().unwrap().push_str(std::str::from_utf8(&chunk[..length]).unwrap());
        let _ = stream.write_all(&chunk[..length]);
    }
}

fn client(proxy: &Proxy) -> TcpStream {
    let stream = TcpStream::connect(proxy.addr()).unwrap();
    stream.set_read_timeout(Some(wait::DEADLINE)).unwrap();
    stream
}

fn say(stream: &mut TcpStream, text: &str) -> String {
    stream.write_all(text.as_bytes()).unwrap();
    read(stream, text.len())
}

fn read(stream: &mut TcpStream, length: usize) -> String {
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

fn is_closed(stream: &mut TcpStream) -> bool {
    match stream.read(&mut [0; 1]) {
        Ok(length) => length == 0,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
    }
}
