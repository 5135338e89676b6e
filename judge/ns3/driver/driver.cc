// One experiment of the laboratory in ns-3: hosts on both sides of one bottleneck.
//
//   left 0 --\                            /-- right 0
//   left 1 ---- router L == bottleneck == router R ---- right 1
//
// It reads lines "KEY VALUE..." on standard input and writes lines "KEY VALUE..." on standard
// output; ../ns3.go writes the input and reads the output. Times are in seconds, rates in bits a
// second.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <algorithm>
#include <iostream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

using namespace ns3;

namespace
{

// PPP's header, which ns-3 includes in a packet's transmission time.
const double kFraming = 2;

// Wire is a point-to-point channel that delays each packet by up to `jitter` more, without reordering.
class Wire : public PointToPointChannel
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId tid =
            TypeId("tidepool::Wire").SetParent<PointToPointChannel>().AddConstructor<Wire>();
        return tid;
    }

    double delay[2] = {}; // by sending device
    double jitter = 0;    // for packets of device 0, a host
    uint64_t sent = 0;    // packets of device 0

    bool TransmitStart(Ptr<const Packet> p, Ptr<PointToPointNetDevice> src, Time txTime) override
    {
        const int way = GetPointToPointDevice(0) == src ? 0 : 1;
        auto dst = GetPointToPointDevice(1 - way);
        Time at = Simulator::Now() + txTime + Seconds(delay[way]);
        sent += way == 0;
        if (jitter > 0 && way == 0)
        {
            at += Seconds(random->GetValue(0, jitter));
        }
        last[way] = at = Max(at, last[way]);
        Simulator::ScheduleWithContext(dst->GetNode()->GetId(), at - Simulator::Now(),
                                       &PointToPointNetDevice::Receive, dst, p->Copy());
        return true;
    }

  private:
    Ptr<UniformRandomVariable> random = CreateObject<UniformRandomVariable>();
    Time last[2];
};

// EveryNth drops each N-th packet.
class EveryNth : public ErrorModel
{
  public:
    uint64_t every = 0;

  private:
    uint64_t seen = 0;

    bool DoCorrupt(Ptr<Packet>) override { return ++seen % every == 0; }
    void DoReset() override { seen = 0; }
};

// WithoutEndGrowth is a congestion control without the window growth at the end of a recovery. There,
// ns-3's TcpSocketBase counts all segments sent in the recovery as newly acknowledged, although SACK
// had reported them before.
template <class Base>
class WithoutEndGrowth : public Base
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId tid = TypeId(Base::GetTypeId().GetName() + "WithoutEndGrowth")
                                .SetParent<Base>()
                                .template AddConstructor<WithoutEndGrowth<Base>>();
        return tid;
    }

    void IncreaseWindow(Ptr<TcpSocketState> tcb, uint32_t segments) override
    {
        const uint32_t kDelayed = 2; // more than a delayed acknowledgment has
        if (segments > 0 && segments <= kDelayed)
        {
            Base::IncreaseWindow(tcb, segments);
        }
    }

    Ptr<TcpCongestionOps> Fork() override { return CopyObject<WithoutEndGrowth<Base>>(this); }
};

// CountOnce is PRR that counts the data of an acknowledgment once. ns-3's PRR adds a segment for each
// duplicate acknowledgment although SACK has counted it.
class CountOnce : public TcpPrrRecovery
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId tid =
            TypeId("tidepool::CountOnce").SetParent<TcpPrrRecovery>().AddConstructor<CountOnce>();
        return tid;
    }

    void DoRecovery(Ptr<TcpSocketState> tcb, uint32_t delivered, bool) override
    {
        TcpPrrRecovery::DoRecovery(tcb, delivered, false);
    }

    Ptr<TcpRecoveryOps> Fork() override { return CopyObject<CountOnce>(this); }
};

// FreshSamples is BBR whose delivery rate samples end with the current acknowledgment. ns-3's BBR keeps
// the interval of an earlier acknowledgment if this one is for a segment sent at the same time, but
// counts the data that it delivers.
class FreshSamples : public TcpBbr
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId tid =
            TypeId("tidepool::FreshSamples").SetParent<TcpBbr>().AddConstructor<FreshSamples>();
        return tid;
    }

    void CongControl(Ptr<TcpSocketState> tcb, const TcpRateOps::TcpRateConnection& rc,
                     const TcpRateOps::TcpRateSample& sample) override
    {
        auto rs = sample;
        if (!rs.m_interval.IsZero() && rs.m_delivered > 0)
        {
            rs.m_interval = Max(rs.m_sendElapsed, Simulator::Now() - rs.m_priorTime);
            rs.m_deliveryRate =
                DataRate(uint64_t(rs.m_delivered * 8.0 / rs.m_interval.GetSeconds()));
        }
        TcpBbr::CongControl(tcb, rc, rs);
    }

    Ptr<TcpCongestionOps> Fork() override { return CopyObject<FreshSamples>(this); }
};

NS_OBJECT_ENSURE_REGISTERED(FreshSamples);
NS_OBJECT_ENSURE_REGISTERED(CountOnce);
NS_OBJECT_ENSURE_REGISTERED(Wire);

struct Direction
{
    double rate = 0, delay = 0, loss = 0;
    uint64_t every = 0;
    std::string disc = "ns3::FifoQueueDisc";
    std::map<std::string, std::string> attributes;
};

struct Flow
{
    std::string cc;
    double start = 0, stop = 0, delay = 0;
    bool upward = false, sack = true, ecn = false;
    uint32_t mss = 1448, delack = 2, initial = 10, ssthresh = 0;
    double delackTimeout = 0.04;
    uint32_t sndbuf = 4 << 20, rcvbuf = 4 << 20;
    uint64_t size = 0;

    Ptr<PacketSink> sink;
    Ptr<Wire> wires[2]; // of its hosts
    uint64_t warm = 0, retransmits = 0, timeouts = 0;
    double rttSum = 0, rttMin = 1e9, rttMax = 0;
    uint64_t rtts = 0;
    double finished = -1, printed = -1;
    double cwnd = 0, cwndArea = 0, cwndAt = -1;
    double ssthreshNow = 0, rttNow = 0, flight = 0;
};

double duration = 60, warmup = 0, jitter = 0;
uint32_t mtu = 1500;
bool record = false;
std::set<std::string> without; // the deviations of ns-3 to remove: Deviations in ../scenario.go
Direction down, up;
std::vector<Flow> flows;

double
Now()
{
    return Simulator::Now().GetSeconds();
}

// Watch records how long the packets of one direction wait, in the queue and for the packet in service.
struct Watch
{
    std::vector<double> waits;
    uint64_t drops = 0, marks = 0, bytes = 0, losses = 0;
} watchDown, watchUp;

void
Sample(Flow* f)
{
    if (record)
    {
        std::cout << "sample " << (f - flows.data()) << ' ' << Now() << ' ' << f->cwnd << ' '
                  << f->ssthreshNow << ' ' << f->rttNow << ' ' << f->flight << '\n';
    }
}

void
CountWindow(Flow* f, double now)
{
    if (f->cwndAt >= 0 && now > warmup)
    {
        f->cwndArea += f->cwnd * (now - std::max(f->cwndAt, warmup));
    }
    f->cwndAt = now;
}

void
OnWindow(Flow* f, uint32_t, uint32_t v)
{
    CountWindow(f, Now());
    f->cwnd = v;
    Sample(f);
}

void
OnThreshold(Flow* f, uint32_t, uint32_t v)
{
    f->ssthreshNow = v == UINT32_MAX ? 0 : v;
}

void
OnFlight(Flow* f, uint32_t, uint32_t v)
{
    f->flight = v;
}

void
OnRTT(Flow* f, Time, Time v)
{
    f->rttNow = v.GetSeconds();
    if (Now() < warmup)
    {
        return;
    }
    f->rttSum += f->rttNow;
    f->rttMin = std::min(f->rttMin, f->rttNow);
    f->rttMax = std::max(f->rttMax, f->rttNow);
    f->rtts++;
}

void
OnState(Flow* f, TcpSocketState::TcpCongState_t, TcpSocketState::TcpCongState_t v)
{
    f->timeouts += v == TcpSocketState::CA_LOSS;
}

void
OnRetransmission(Flow* f, Ptr<const Packet>, const TcpHeader&, const Address&, const Address&,
                 Ptr<const TcpSocketBase>)
{
    f->retransmits++;
}

void
OnReceived(Flow* f, Ptr<const Packet>, const Address&)
{
    const double kStep = 0.01;
    if (record && Now() - f->printed >= kStep)
    {
        f->printed = Now();
        std::cout << "progress " << (f - flows.data()) << ' ' << Now() << ' '
                  << f->sink->GetTotalRx() << '\n';
    }
    if (f->size > 0 && f->finished < 0 && f->sink->GetTotalRx() >= f->size)
    {
        f->finished = Now();
    }
}

void
Trace(Flow* f, Ptr<BulkSendApplication> app)
{
    auto socket = app->GetSocket();
    socket->TraceConnectWithoutContext("CongestionWindow", MakeBoundCallback(&OnWindow, f));
    socket->TraceConnectWithoutContext("SlowStartThreshold", MakeBoundCallback(&OnThreshold, f));
    socket->TraceConnectWithoutContext("BytesInFlight", MakeBoundCallback(&OnFlight, f));
    socket->TraceConnectWithoutContext("LastRTT", MakeBoundCallback(&OnRTT, f));
    socket->TraceConnectWithoutContext("CongState", MakeBoundCallback(&OnState, f));
    socket->TraceConnectWithoutContext("Retransmission", MakeBoundCallback(&OnRetransmission, f));
}

void
OnWait(Watch* w, Time t)
{
    if (Now() >= warmup)
    {
        w->waits.push_back(t.GetSeconds());
    }
}

void
OnDrop(Watch* w, Ptr<const QueueDiscItem>)
{
    w->drops++;
}

void
OnMark(Watch* w, Ptr<const QueueDiscItem>, const char*)
{
    w->marks++;
}

void
OnLeave(Watch* w, Ptr<const Packet> p)
{
    if (Now() >= warmup)
    {
        w->bytes += p->GetSize() - uint32_t(kFraming);
    }
}

void
OnLoss(Watch* w, Ptr<const Packet>)
{
    w->losses++;
}

Ptr<PointToPointNetDevice>
Device(Ptr<Node> node, Ptr<Wire> wire, double rate, const char* queue)
{
    auto d = CreateObject<PointToPointNetDevice>();
    d->SetAttribute("DataRate", DataRateValue(DataRate(uint64_t(rate))));
    d->SetMtu(mtu);
    auto q = CreateObject<DropTailQueue<Packet>>();
    q->SetAttribute("MaxSize", StringValue(queue));
    d->SetQueue(q);
    d->SetAddress(Mac48Address::Allocate());
    node->AddDevice(d);
    // The traffic control layer stops and starts the device's queue.
    auto ndqi = CreateObject<NetDeviceQueueInterface>();
    ndqi->GetTxQueue(0)->ConnectQueueTraces(q);
    d->AggregateObject(ndqi);
    d->Attach(wire);
    return d;
}

// Join connects a host and a router by a link without a rate limit. Only a host that sends data delays
// its packets by the jitter.
Ptr<Wire>
Join(Ptr<Node> host, Ptr<Node> router, double delay, Ipv4AddressHelper& addresses,
     Ipv4InterfaceContainer* out, bool sends)
{
    const double kFast = 100e9;
    auto wire = CreateObject<Wire>();
    wire->delay[0] = wire->delay[1] = delay;
    wire->jitter = sends ? jitter : 0;
    NetDeviceContainer devices(Device(host, wire, kFast, "100000p"));
    devices.Add(Device(router, wire, kFast, "100000p"));
    *out = addresses.Assign(devices);
    TrafficControlHelper().Uninstall(devices);
    addresses.NewNetwork();
    return wire;
}

void
Impair(Ptr<PointToPointNetDevice> to, const Direction& d, Watch* w)
{
    if (d.every > 0)
    {
        auto e = CreateObject<EveryNth>();
        e->every = d.every;
        to->SetReceiveErrorModel(e);
    }
    else if (d.loss > 0)
    {
        auto e = CreateObject<RateErrorModel>();
        e->SetUnit(RateErrorModel::ERROR_UNIT_PACKET);
        e->SetRate(d.loss);
        to->SetReceiveErrorModel(e);
    }
    to->TraceConnectWithoutContext("PhyRxDrop", MakeBoundCallback(&OnLoss, w));
}

void
Serve(Ptr<PointToPointNetDevice> from, const Direction& d, Watch* w)
{
    from->TraceConnectWithoutContext("PhyTxEnd", MakeBoundCallback(&OnLeave, w));
    if (d.rate <= 0)
    {
        return;
    }
    TrafficControlHelper control;
    control.SetRootQueueDisc(d.disc);
    auto disc = control.Install(NetDeviceContainer(from)).Get(0);
    for (const auto& [key, value] : d.attributes)
    {
        disc->SetAttribute(key, StringValue(value));
    }
    disc->TraceConnectWithoutContext("SojournTime", MakeBoundCallback(&OnWait, w));
    disc->TraceConnectWithoutContext("Drop", MakeBoundCallback(&OnDrop, w));
    disc->TraceConnectWithoutContext("Mark", MakeBoundCallback(&OnMark, w));
}

TypeId
Congestion(const std::string& name)
{
    if (name == "TcpBbr" && without.count("stale-samples")) return FreshSamples::GetTypeId();
    if (without.count("end-growth"))
    {
        if (name == "TcpLinuxReno") return WithoutEndGrowth<TcpLinuxReno>::GetTypeId();
        if (name == "TcpCubic") return WithoutEndGrowth<TcpCubic>::GetTypeId();
    }
    return TypeId::LookupByName("ns3::" + name);
}

// Apply sets a flow's TCP parameters for the sockets created next. In ns-3 they are global attributes,
// so the stacks of each flow's hosts are installed while its attributes are set.
void
Apply(const Flow& f)
{
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(Congestion(f.cc)));
    if (without.count("double-count"))
    {
        Config::SetDefault("ns3::TcpL4Protocol::RecoveryType",
                           TypeIdValue(CountOnce::GetTypeId()));
    }
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(f.sack));
    Config::SetDefault("ns3::TcpSocketBase::UseEcn", StringValue(f.ecn ? "On" : "Off"));
    Config::SetDefault("ns3::TcpSocketBase::MinRto",
                       TimeValue(MilliSeconds(without.count("early-timeouts") ? 1000 : 200)));
    Config::SetDefault("ns3::TcpSocketBase::ClockGranularity", TimeValue(MilliSeconds(1)));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(f.mss));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(f.initial));
    Config::SetDefault("ns3::TcpSocket::InitialSlowStartThreshold",
                       UintegerValue(f.ssthresh ? f.ssthresh * f.mss : UINT32_MAX));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(f.delack));
    Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(Seconds(f.delackTimeout)));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(f.sndbuf));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(f.rcvbuf));
}

void
Set(Direction& d, const std::string& key, std::istream& in)
{
    if (key == "rate") in >> d.rate;
    else if (key == "delay") in >> d.delay;
    else if (key == "loss") in >> d.loss;
    else if (key == "every") in >> d.every;
    else if (key == "disc") in >> d.disc;
    else if (key == "attribute")
    {
        std::string name, value;
        in >> name >> value;
        d.attributes[name] = value;
    }
    else NS_FATAL_ERROR("unknown key of a direction: " << key);
}

void
Set(Flow& f, const std::string& key, std::istream& in)
{
    if (key == "cc") in >> f.cc;
    else if (key == "start") in >> f.start;
    else if (key == "stop") in >> f.stop;
    else if (key == "delay") in >> f.delay;
    else if (key == "upward") in >> f.upward;
    else if (key == "sack") in >> f.sack;
    else if (key == "ecn") in >> f.ecn;
    else if (key == "mss") in >> f.mss;
    else if (key == "delack") in >> f.delack;
    else if (key == "delack_timeout") in >> f.delackTimeout;
    else if (key == "initial") in >> f.initial;
    else if (key == "ssthresh") in >> f.ssthresh;
    else if (key == "sndbuf") in >> f.sndbuf;
    else if (key == "rcvbuf") in >> f.rcvbuf;
    else if (key == "size") in >> f.size;
    else NS_FATAL_ERROR("unknown key of a flow: " << key);
}

void
Read()
{
    std::string line;
    while (std::getline(std::cin, line))
    {
        std::istringstream in(line);
        std::string key, word;
        in >> key;
        uint64_t n = 0;
        if (key.empty()) continue;
        if (key == "duration") in >> duration;
        else if (key == "warmup") in >> warmup;
        else if (key == "jitter") in >> jitter;
        else if (key == "mtu") in >> mtu;
        else if (key == "record") in >> record;
        else if (key == "run") in >> n, RngSeedManager::SetRun(n);
        else if (key == "without") in >> word, without.insert(word);
        else if (key == "flow") flows.emplace_back();
        else if (key.rfind("down.", 0) == 0) Set(down, key.substr(5), in);
        else if (key.rfind("up.", 0) == 0) Set(up, key.substr(3), in);
        else if (key.rfind("flow.", 0) == 0 && !flows.empty()) Set(flows.back(), key.substr(5), in);
        else NS_FATAL_ERROR("unknown key: " << line);
        if (in.fail()) NS_FATAL_ERROR("no value: " << line);
    }
}

double
Quantile(std::vector<double>& v, double q)
{
    if (v.empty()) return 0;
    auto at = v.begin() + size_t(q * double(v.size() - 1));
    std::nth_element(v.begin(), at, v.end());
    return *at;
}

void
Print(const char* name, const Direction& d, Watch& w)
{
    double sum = 0, most = 0;
    for (double wait : w.waits)
    {
        sum += wait;
        most = std::max(most, wait);
    }
    std::cout << "link " << name << " utilisation "
              << (d.rate > 0 ? double(w.bytes) * 8 / d.rate / (duration - warmup) : 0)
              << " queue_mean " << (w.waits.empty() ? 0 : sum / double(w.waits.size()))
              << " queue_p50 " << Quantile(w.waits, .5) << " queue_p95 " << Quantile(w.waits, .95)
              << " queue_max " << most << " queue_drops " << w.drops << " losses " << w.losses
              << " marks " << w.marks << '\n';
}

} // namespace

int
main()
{
    std::cout.precision(10);
    Read();
    Config::SetDefault("ns3::PointToPointNetDevice::InterframeGap", TimeValue(Seconds(0)));
    Config::SetDefault("ns3::TcpSocket::TcpNoDelay", BooleanValue(true));

    NodeContainer routers(2);
    InternetStackHelper stack;
    stack.Install(routers);
    auto wire = CreateObject<Wire>();
    const double kFast = 100e9, kGrow = (mtu + kFraming) / mtu;
    wire->delay[0] = down.delay;
    wire->delay[1] = up.delay;
    auto left = Device(routers.Get(0), wire, down.rate > 0 ? down.rate * kGrow : kFast,
                       down.rate > 0 ? "1p" : "100000p");
    auto right = Device(routers.Get(1), wire, up.rate > 0 ? up.rate * kGrow : kFast,
                        up.rate > 0 ? "1p" : "100000p");
    Impair(right, down, &watchDown);
    Impair(left, up, &watchUp);
    Serve(left, down, &watchDown);
    Serve(right, up, &watchUp);
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
    NetDeviceContainer bottleneck(left);
    bottleneck.Add(right);
    addresses.Assign(bottleneck);
    if (down.rate <= 0) TrafficControlHelper().Uninstall(NetDeviceContainer(left));
    if (up.rate <= 0) TrafficControlHelper().Uninstall(NetDeviceContainer(right));
    addresses.NewNetwork();

    std::vector<Ipv4InterfaceContainer> ends(2 * flows.size());
    for (size_t i = 0; i < flows.size(); i++)
    {
        auto& f = flows[i];
        Apply(f);
        NodeContainer hosts(2);
        stack.Install(hosts);
        for (int j : {0, 1})
        {
            f.wires[j] = Join(hosts.Get(j), routers.Get(j), f.delay, addresses, &ends[2 * i + j],
                              f.upward == (j == 1));
        }
        const uint16_t kPort = 9;
        const int from = f.upward ? 1 : 0;
        PacketSinkHelper sink("ns3::TcpSocketFactory",
                              InetSocketAddress(Ipv4Address::GetAny(), kPort));
        auto sinks = sink.Install(hosts.Get(1 - from));
        sinks.Start(Seconds(0));
        f.sink = DynamicCast<PacketSink>(sinks.Get(0));
        f.sink->TraceConnectWithoutContext("Rx", MakeBoundCallback(&OnReceived, &f));
        BulkSendHelper bulk("ns3::TcpSocketFactory",
                            InetSocketAddress(ends[2 * i + 1 - from].GetAddress(0), kPort));
        bulk.SetAttribute("MaxBytes", UintegerValue(f.size));
        bulk.SetAttribute("SendSize", UintegerValue(f.mss));
        auto apps = bulk.Install(hosts.Get(from));
        apps.Start(Seconds(f.start));
        if (f.stop > 0) apps.Stop(Seconds(f.stop));
        Simulator::Schedule(Seconds(f.start) + NanoSeconds(1), &Trace, &f,
                            DynamicCast<BulkSendApplication>(apps.Get(0)));
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();
    Simulator::Schedule(Seconds(warmup), [] {
        for (auto& f : flows) f.warm = f.sink->GetTotalRx();
    });
    Simulator::Stop(Seconds(duration));
    Simulator::Run();

    for (size_t i = 0; i < flows.size(); i++)
    {
        auto& f = flows[i];
        CountWindow(&f, duration);
        const double stop = f.stop > 0 ? f.stop : duration;
        const double end = f.finished >= 0 ? f.finished : stop, begin = std::max(f.start, warmup);
        std::cout << "flow " << i << " goodput "
                  << (end > begin ? double(f.sink->GetTotalRx() - f.warm) * 8 / (end - begin) : 0)
                  << " delivered " << f.sink->GetTotalRx() << " sent "
                  << f.wires[0]->sent + f.wires[1]->sent << " retransmits " << f.retransmits
                  << " timeouts " << f.timeouts << " cwnd_mean "
                  << (duration > warmup ? f.cwndArea / (duration - warmup) : 0);
        if (f.rtts > 0)
        {
            std::cout << " rtt_mean " << f.rttSum / double(f.rtts) << " rtt_min " << f.rttMin
                      << " rtt_max " << f.rttMax;
        }
        if (f.finished >= 0)
        {
            std::cout << " completion " << f.finished - f.start;
        }
        std::cout << '\n';
    }
    Print("down", down, watchDown);
    Print("up", up, watchUp);
    std::cout << "events " << Simulator::GetEventCount() << '\n';
    Simulator::Destroy();
}
