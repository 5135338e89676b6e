/* lwip makes lwIP a node of the course, for `node examine`: lwip --config FILE.lnx
 *
 * Build: cc -O2 -I/usr/include/lwip -o bin/lwip bench/stacks/lwip.c -llwip   (Debian: liblwip-dev)
 *
 * The file has one interface and one neighbor. The commands are those of the profile lwip.yaml.
 * lwIP's own thread takes the packets and the timers; this program holds its lock elsewhere. */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <lwip/init.h>
#include <lwip/ip4.h>
#include <lwip/netif.h>
#include <lwip/priv/tcp_priv.h>
#include <lwip/tcp.h>
#include <lwip/tcpip.h>

enum { MAX_SOCKETS = 65536, MAX_PACKET = 65535, BACKLOG = 64 };

struct conn {
	int number;
	struct tcp_pcb *pcb; /* NULL: closed */
	bool listens;
	struct pbuf *in;  /* received, not read */
	size_t wanted;    /* bytes that `r` still reads */
	char *out;        /* to be sent from `sent` on */
	size_t len, sent;
	bool shut, close; /* once all is sent */
	FILE *store;      /* of rf */
};

static struct conn *conns[MAX_SOCKETS];
static int count;
static struct netif interface;
static int udp_socket;
static struct sockaddr_in neighbor;

static err_t output(struct netif *n, struct pbuf *p, const ip4_addr_t *to)
{
	char packet[MAX_PACKET];
	u16_t len = pbuf_copy_partial(p, packet, sizeof packet, 0);

	(void)n, (void)to;
	sendto(udp_socket, packet, len, 0, (struct sockaddr *)&neighbor, sizeof neighbor);
	return ERR_OK;
}

static err_t start(struct netif *n)
{
	n->name[0] = 'i', n->name[1] = 'f';
	n->mtu = 1400;
	n->output = output;
	netif_set_link_up(n);
	return ERR_OK;
}

static struct conn *add(struct tcp_pcb *pcb)
{
	struct conn *c = calloc(1, sizeof *c);

	if (c == NULL || count == MAX_SOCKETS)
		abort();
	c->number = count, c->pcb = pcb;
	conns[count++] = c;
	tcp_arg(pcb, c);
	return c;
}

/* pump sends what is waiting, then the FIN. */
static void pump(struct conn *c)
{
	if (c->pcb == NULL || c->listens || c->pcb->state < ESTABLISHED)
		return;
	while (c->sent < c->len) {
		size_t n = LWIP_MIN(c->len - c->sent, LWIP_MIN(tcp_sndbuf(c->pcb), 32768));

		if (n == 0 || tcp_write(c->pcb, c->out + c->sent, n, TCP_WRITE_FLAG_COPY) != ERR_OK)
			break;
		c->sent += n;
	}
	tcp_output(c->pcb);
	if (c->sent < c->len)
		return;
	if (c->close) {
		struct tcp_pcb *pcb = c->pcb;

		tcp_arg(pcb, NULL), tcp_recv(pcb, NULL), tcp_sent(pcb, NULL);
		tcp_poll(pcb, NULL, 0), tcp_err(pcb, NULL);
		c->pcb = NULL;
		if (tcp_close(pcb) != ERR_OK)
			tcp_abort(pcb);
	} else if (c->shut && tcp_shutdown(c->pcb, 0, 1) == ERR_OK) {
		c->shut = false;
	}
}

/* deliver hands over received bytes that the user wants. */
static void deliver(struct conn *c)
{
	while (c->in != NULL && (c->wanted > 0 || c->store != NULL)) {
		size_t n = c->store != NULL ? c->in->tot_len : LWIP_MIN(c->wanted, c->in->tot_len);
		char b[MAX_PACKET];

		n = pbuf_copy_partial(c->in, b, LWIP_MIN(n, sizeof b), 0);
		c->in = pbuf_free_header(c->in, n);
		if (c->store != NULL) {
			fwrite(b, 1, n, c->store);
			fflush(c->store);
		} else {
			c->wanted -= n;
			printf("Read %zu bytes: %.*s\n", n, (int)n, b);
		}
		if (c->pcb != NULL)
			tcp_recved(c->pcb, n);
	}
}

static err_t received(void *arg, struct tcp_pcb *pcb, struct pbuf *p, err_t err)
{
	struct conn *c = arg;

	(void)pcb, (void)err;
	if (p == NULL) { /* FIN */
		if (c->store != NULL) {
			fclose(c->store);
			c->store = NULL, c->close = true;
			pump(c);
		}
		return ERR_OK;
	}
	if (c->in == NULL)
		c->in = p;
	else
		pbuf_cat(c->in, p);
	deliver(c);
	return ERR_OK;
}

static err_t acknowledged(void *arg, struct tcp_pcb *pcb, u16_t n)
{
	(void)pcb, (void)n;
	pump(arg);
	return ERR_OK;
}

static err_t again(void *arg, struct tcp_pcb *pcb)
{
	(void)pcb;
	if (arg != NULL)
		pump(arg);
	return ERR_OK;
}

static void failed(void *arg, err_t err)
{
	struct conn *c = arg;

	(void)err;
	if (c != NULL)
		c->pcb = NULL; /* lwIP has freed it */
}

static void watch(struct tcp_pcb *pcb)
{
	tcp_recv(pcb, received);
	tcp_sent(pcb, acknowledged);
	tcp_poll(pcb, again, 1);
	tcp_err(pcb, failed);
}

static err_t accepted(void *arg, struct tcp_pcb *pcb, err_t err)
{
	struct conn *listener = arg, *c;

	if (err != ERR_OK || pcb == NULL)
		return ERR_VAL;
	c = add(pcb);
	c->store = listener->store, listener->store = NULL;
	watch(pcb);
	return ERR_OK;
}

static err_t connected(void *arg, struct tcp_pcb *pcb, err_t err)
{
	(void)pcb, (void)err;
	pump(arg);
	return ERR_OK;
}

static struct conn *listen_on(int port)
{
	struct tcp_pcb *pcb = tcp_new();
	struct conn *c;

	if (pcb == NULL || tcp_bind(pcb, IP_ADDR_ANY, port) != ERR_OK ||
	    (pcb = tcp_listen_with_backlog(pcb, BACKLOG)) == NULL) {
		printf("cannot listen\n");
		return NULL;
	}
	c = add(pcb);
	c->listens = true;
	tcp_accept(pcb, accepted);
	return c;
}

static struct conn *connect_to(const char *addr, int port)
{
	struct tcp_pcb *pcb = tcp_new();
	struct conn *c;
	ip_addr_t to;

	if (pcb == NULL || !ipaddr_aton(addr, &to))
		return NULL;
	c = add(pcb);
	watch(pcb);
	if (tcp_connect(pcb, &to, port, connected) != ERR_OK)
		printf("cannot connect\n");
	return c;
}

static void append(struct conn *c, const void *data, size_t n)
{
	c->out = realloc(c->out, c->len + n + 1);
	if (c->out == NULL)
		abort();
	memcpy(c->out + c->len, data, n);
	c->len += n;
	pump(c);
}

static void send_file(const char *name, struct conn *c)
{
	char b[MAX_PACKET];
	FILE *f = fopen(name, "rb");

	for (size_t n; f != NULL && (n = fread(b, 1, sizeof b, f)) > 0;)
		append(c, b, n);
	if (f != NULL)
		fclose(f);
	c->close = true;
	pump(c);
}

/* command executes a line. */
static void command(char *line)
{
	char word[16] = "", a[512] = "", addr[64] = "";
	int n = 0, port = 0, text = 0;
	struct conn *c;

	sscanf(line, "%15s", word);
	if (strcmp(word, "li") == 0) {
		printf("if0 %s up\n", ip4addr_ntoa(netif_ip4_addr(&interface)));
	} else if (strcmp(word, "a") == 0 && sscanf(line, "a %d", &port) == 1) {
		listen_on(port);
	} else if (strcmp(word, "c") == 0 && sscanf(line, "c %63s %d", addr, &port) == 2) {
		connect_to(addr, port);
	} else if (strcmp(word, "sf") == 0 && sscanf(line, "sf %511s %63s %d", a, addr, &port) == 3) {
		if ((c = connect_to(addr, port)) != NULL)
			send_file(a, c);
	} else if (strcmp(word, "rf") == 0 && sscanf(line, "rf %511s %d", a, &port) == 2) {
		if ((c = listen_on(port)) != NULL)
			c->store = fopen(a, "wb");
	} else if (sscanf(line, "%*s %d %n", &n, &text) != 1 || n < 0 || n >= count) {
		printf("no such command or socket: %s\n", line);
	} else if (c = conns[n], strcmp(word, "s") == 0) {
		append(c, line + text, strlen(line + text));
	} else if (strcmp(word, "r") == 0) {
		c->wanted += strtoul(line + text, NULL, 10);
		deliver(c);
	} else if (strcmp(word, "sd") == 0) {
		c->shut = true;
		pump(c);
	} else if (strcmp(word, "cl") == 0) {
		c->close = true;
		if (c->pcb != NULL && (c->listens || c->pcb->state < ESTABLISHED)) {
			tcp_arg(c->pcb, NULL);
			tcp_close(c->pcb);
			c->pcb = NULL;
		}
		pump(c);
	} else {
		printf("no such command: %s\n", line);
	}
}

static void *receive(void *arg)
{
	char packet[MAX_PACKET];

	(void)arg;
	for (;;) {
		ssize_t n = recv(udp_socket, packet, sizeof packet, 0);
		struct pbuf *p;

		if (n < 0 || (p = pbuf_alloc(PBUF_RAW, n, PBUF_RAM)) == NULL)
			continue;
		pbuf_take(p, packet, n);
		if (interface.input(p, &interface) != ERR_OK)
			pbuf_free(p);
	}
	return NULL;
}

/* configure reads the .lnx file. */
static bool configure(const char *name, struct sockaddr_in *own, ip4_addr_t *ip, ip4_addr_t *gw)
{
	char line[256], addr[64], udp[64];
	int prefix, port;
	bool found = false;
	FILE *f = fopen(name, "r");

	while (f != NULL && fgets(line, sizeof line, f) != NULL) {
		if (sscanf(line, "interface %*s %63[0-9.]/%d %63[0-9.]:%d", addr, &prefix, udp, &port) == 4) {
			own->sin_family = AF_INET, own->sin_port = htons(port);
			inet_aton(udp, &own->sin_addr);
			found = ip4addr_aton(addr, ip);
		} else if (sscanf(line, "neighbor %63s at %63[0-9.]:%d", addr, udp, &port) == 3) {
			neighbor.sin_family = AF_INET, neighbor.sin_port = htons(port);
			inet_aton(udp, &neighbor.sin_addr);
			ip4addr_aton(addr, gw);
		}
	}
	if (f != NULL)
		fclose(f);
	return found;
}

/* next_line reads a command without stdio: lwIP's failed assertions flush all of its files. */
static bool next_line(char *line, size_t size)
{
	size_t n = 0;
	char c;

	while (read(STDIN_FILENO, &c, 1) == 1) {
		if (c == '\n') {
			line[n] = 0;
			return true;
		}
		if (c != '\r' && n < size - 1)
			line[n++] = c;
	}
	return false;
}

int main(int argc, char **argv)
{
	struct sockaddr_in own = {0};
	ip4_addr_t ip, gw, mask;
	pthread_t thread;
	char line[65536];

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc != 3 || !configure(argv[2], &own, &ip, &gw)) {
		fprintf(stderr, "usage: lwip --config FILE.lnx, with one interface\n");
		return 2;
	}
	tcpip_init(NULL, NULL);
	LOCK_TCPIP_CORE();
	IP4_ADDR(&mask, 255, 255, 255, 0);
	netif_add(&interface, &ip, &mask, &gw, NULL, start, tcpip_input);
	netif_set_default(&interface);
	netif_set_up(&interface);
	UNLOCK_TCPIP_CORE();
	udp_socket = socket(AF_INET, SOCK_DGRAM, 0);
	if (bind(udp_socket, (struct sockaddr *)&own, sizeof own) != 0) {
		perror("bind");
		return 1;
	}
	pthread_create(&thread, NULL, receive, NULL);
	while (next_line(line, sizeof line)) {
		LOCK_TCPIP_CORE();
		command(line);
		UNLOCK_TCPIP_CORE();
	}
	return 0;
}
