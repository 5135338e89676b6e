//! Makes smoltcp a node of the course, for `node examine`: smoltcp-node --config FILE.lnx
//!
//! The file has one interface and one neighbor. The commands are those of the profile smoltcp.yaml.

use std::collections::{HashMap, VecDeque};
use std::fs::{self, File};
use std::io::{self, BufRead, Write};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::mpsc;
use std::{env, process, thread};

use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::tcp::{Socket, SocketBuffer, State};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};

const BUFFER: usize = 65535;

/// The link: IP packets in UDP datagrams.
struct Link {
    socket: UdpSocket,
    neighbor: SocketAddr,
    waiting: VecDeque<Vec<u8>>,
}

impl Link {
    /// Reads all datagrams that have arrived.
    fn read(&mut self) {
        let mut b = [0; 1 << 16];
        while let Ok(n) = self.socket.recv(&mut b) {
            self.waiting.push_back(b[..n].to_vec());
        }
    }
}

struct Received(Vec<u8>);

impl RxToken for Received {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(&self.0)
    }
}

struct Sender<'a>(&'a UdpSocket, SocketAddr);

impl TxToken for Sender<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        let mut b = vec![0; len];
        let r = f(&mut b);
        let _ = self.0.send_to(&b, self.1); // a lost packet
        r
    }
}

impl Device for Link {
    type RxToken<'a> = Received;
    type TxToken<'a> = Sender<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Received, Sender<'_>)> {
        let packet = self.waiting.pop_front()?;
        Some((Received(packet), Sender(&self.socket, self.neighbor)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Sender<'_>> {
        Some(Sender(&self.socket, self.neighbor))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut c = DeviceCapabilities::default();
        c.medium = Medium::Ip;
        c.max_transmission_unit = 1400;
        c
    }
}

/// What the user wants of a connection.
#[derive(Default)]
struct Conn {
    wanted: usize,
    out: VecDeque<u8>,
    finish: bool, // close once all is sent
    store: Option<File>,
}

struct Node {
    sockets: SocketSet<'static>,
    numbers: Vec<Option<SocketHandle>>, // None: a listener
    conns: HashMap<usize, Conn>,
    listeners: Vec<(u16, Vec<SocketHandle>, Option<File>)>,
}

/// How many sockets of a port listen, because each becomes one connection.
const BACKLOG: usize = 128;

fn new_socket() -> Socket<'static> {
    let mut s = Socket::new(SocketBuffer::new(vec![0; BUFFER]), SocketBuffer::new(vec![0; BUFFER]));
    s.set_nagle_enabled(true);
    s
}

impl Node {
    fn listen(&mut self, port: u16, store: Option<File>) {
        let list = (0..BACKLOG).map(|_| self.listening(port)).collect();
        self.listeners.push((port, list, store));
    }

    fn listening(&mut self, port: u16) -> SocketHandle {
        let mut s = new_socket();
        if s.listen(port).is_err() {
            println!("cannot listen");
        }
        self.sockets.add(s)
    }

    fn add(&mut self, h: SocketHandle, store: Option<File>) -> usize {
        self.numbers.push(Some(h));
        let number = self.numbers.len() - 1;
        self.conns.insert(number, Conn { store, ..Conn::default() });
        number
    }

    /// Numbers the connections that are established, and replaces their sockets.
    fn accept(&mut self) {
        for i in 0..self.listeners.len() {
            let mut list = vec![];
            for h in std::mem::take(&mut self.listeners[i].1) {
                match self.sockets.get::<Socket>(h).state() {
                    State::Listen | State::SynReceived => {}
                    State::Closed => {
                        self.sockets.remove(h);
                        continue;
                    }
                    _ => {
                        let store = self.listeners[i].2.take();
                        self.add(h, store);
                        continue;
                    }
                }
                list.push(h);
            }
            while list.len() < BACKLOG {
                list.push(self.listening(self.listeners[i].0));
            }
            self.listeners[i].1 = list;
        }
    }

    fn connect(&mut self, iface: &mut Interface, addr: &str, port: u16) -> Option<usize> {
        let to: Ipv4Addr = addr.parse().ok()?;
        let mut s = new_socket();
        let own = 49152 + (process::id() as usize + self.numbers.len() * 7919) % 16384;
        if s.connect(iface.context(), (IpAddress::Ipv4(to), port), own as u16).is_err() {
            println!("cannot connect");
        }
        let h = self.sockets.add(s);
        Some(self.add(h, None))
    }

    /// Frees closed connections.
    fn free(&mut self) {
        for number in 0..self.numbers.len() {
            let Some(h) = self.numbers[number] else { continue };
            let s = self.sockets.get::<Socket>(h);
            if s.state() == State::Closed && s.recv_queue() == 0 {
                self.sockets.remove(h);
                self.numbers[number] = None;
                self.conns.remove(&number);
            }
        }
    }

    /// Sends and delivers what it can.
    fn pump(&mut self) {
        for (number, c) in self.conns.iter_mut() {
            let Some(h) = self.numbers[*number] else { continue };
            let s = self.sockets.get_mut::<Socket>(h);
            while s.can_send() && !c.out.is_empty() {
                match s.send_slice(c.out.as_slices().0) {
                    Ok(n) if n > 0 => drop(c.out.drain(..n)),
                    _ => break,
                }
            }
            let started = !matches!(s.state(), State::SynSent | State::SynReceived);
            if c.finish && c.out.is_empty() && started {
                s.close();
                c.finish = false;
            }
            while s.can_recv() && (c.wanted > 0 || c.store.is_some()) {
                let mut b = vec![0; if c.store.is_some() { BUFFER } else { c.wanted.min(BUFFER) }];
                let Ok(n) = s.recv_slice(&mut b) else { break };
                match &mut c.store {
                    Some(f) => f.write_all(&b[..n]).unwrap_or_else(|e| println!("{e}")),
                    None => {
                        c.wanted -= n;
                        println!("Read {n} bytes: {}", String::from_utf8_lossy(&b[..n]));
                    }
                }
            }
            if c.store.is_some() && s.state() == State::CloseWait && !s.can_recv() {
                c.store = None;
                s.close();
            }
        }
    }

    fn command(&mut self, iface: &mut Interface, line: &str) -> Option<()> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match *words.first()? {
            "li" => {
                println!("if0 {} up", iface.ipv4_addr()?);
                return Some(());
            }
            "a" => {
                self.numbers.push(None);
                self.listen(words.get(1)?.parse().ok()?, None);
                return Some(());
            }
            "rf" => {
                self.numbers.push(None);
                let f = File::create(words.get(1)?).ok()?;
                self.listen(words.get(2)?.parse().ok()?, Some(f));
                return Some(());
            }
            "c" => {
                self.connect(iface, words.get(1)?, words.get(2)?.parse().ok()?)?;
                return Some(());
            }
            "sf" => {
                let data = fs::read(words.get(1)?).ok()?;
                let n = self.connect(iface, words.get(2)?, words.get(3)?.parse().ok()?)?;
                let c = self.conns.get_mut(&n)?;
                c.out.extend(data);
                c.finish = true;
                return Some(());
            }
            _ => {}
        }
        let c = self.conns.get_mut(&words.get(1)?.parse().ok()?)?;
        match words[0] {
            "s" => c.out.extend(line.splitn(3, ' ').nth(2)?.as_bytes()),
            "r" => c.wanted += words.get(2)?.parse::<usize>().ok()?,
            "sd" | "cl" => c.finish = true,
            _ => return None,
        }
        Some(())
    }
}

/// Reads the address with its prefix, the UDP address, the neighbor and its UDP address.
fn configure(text: &str) -> Option<(IpCidr, SocketAddr, Ipv4Addr, SocketAddr)> {
    let (mut own, mut other) = (None, None);
    for line in text.lines() {
        let w: Vec<&str> = line.split_whitespace().collect();
        match w.first() {
            Some(&"interface") => own = Some((w.get(2)?.parse().ok()?, w.get(3)?.parse().ok()?)),
            Some(&"neighbor") => other = Some((w.get(1)?.parse().ok()?, w.get(3)?.parse().ok()?)),
            _ => {}
        }
    }
    let ((addr, udp), (gateway, at)) = (own?, other?);
    Some((addr, udp, gateway, at))
}

fn main() {
    let args: Vec<String> = env::args().collect();
    let text = args.get(2).and_then(|f| fs::read_to_string(f).ok()).unwrap_or_default();
    let Some((addr, udp, gateway, neighbor)) = configure(&text) else {
        eprintln!("usage: smoltcp-node --config FILE.lnx, with one interface");
        process::exit(2);
    };
    let socket = UdpSocket::bind(udp).expect("bind the UDP port");
    socket.set_nonblocking(true).expect("a UDP socket");
    let fd = socket.as_raw_fd();
    let mut link = Link { socket, neighbor, waiting: VecDeque::new() };
    let mut config = Config::new(HardwareAddress::Ip);
    config.random_seed = u64::from(process::id()) * 0x9e37_79b9_7f4a_7c15;
    let mut iface = Interface::new(config, &mut link, Instant::now());
    iface.update_ip_addrs(|list| list.push(addr).expect("room for one address"));
    iface.routes_mut().add_default_ipv4_route(gateway).expect("room for one route");

    let (lines, commands) = mpsc::channel();
    let (wake_read, mut wake) = io::pipe().expect("a pipe");
    thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            let _ = lines.send(line); // main never ends before
            let _ = wake.write(&[0]);
        }
        process::exit(0);
    });
    let mut node = Node {
        sockets: SocketSet::new(vec![]),
        numbers: vec![],
        conns: HashMap::new(),
        listeners: vec![],
    };
    loop {
        link.read();
        iface.poll(Instant::now(), &mut link, &mut node.sockets);
        node.accept();
        while let Ok(line) = commands.try_recv() {
            if node.command(&mut iface, &line).is_none() {
                println!("cannot do this: {line}");
            }
        }
        node.pump();
        node.free();
        let now = Instant::now();
        iface.poll(now, &mut link, &mut node.sockets);
        let wait = iface.poll_delay(now, &node.sockets).unwrap_or(Duration::from_secs(1));
        sleep(fd, wake_read.as_raw_fd(), wait.total_millis().min(1000) as i32);
    }
}

/// Waits for a datagram, a command or the time.
fn sleep(udp: i32, wake: i32, ms: i32) {
    let poll = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let mut list = [poll(udp), poll(wake)];
    unsafe {
        libc::poll(list.as_mut_ptr(), 2, ms);
        if list[1].revents != 0 {
            let mut b = [0u8; 64];
            libc::read(wake, b.as_mut_ptr().cast(), b.len());
        }
    }
}
