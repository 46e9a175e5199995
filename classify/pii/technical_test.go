package pii

import (
	"slices"
	"testing"
)

// technical are lines that programs write and programmers read. Nothing in them is anyone's, but in
// those of personalInLines.
var technical = []string{
	// Logs.
	`2026-06-15 23:58:31,204 ERROR [main-9] com.acme.order.ReportService - Disregarding stale heartbeat 865 from node 297`,
	`time=2025-11-03T10:15:42.118Z level=INFO msg="request finished" duration_ms=8661 status=200 bytes=1048576`,
	`{"ts":"2026-02-11T08:00:01.000Z","level":"warn","msg":"slow query","elapsed_ms":12873,"trace_id":"4bf92f3577b34da6a3ce929d0e0e4736"}`,
	`Mar 11 16:32:01 web-3 sshd[20713]: Connection closed by 10.20.30.40 port 50022 [preauth]`,
	`Jan  2 03:04:05 host kernel: [123456.789012] usb 1-1: new high-speed USB device number 12 using xhci_hcd`,
	`127.0.0.1 - - [10/Oct/2023:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326`,
	`10.0.12.7 - frank [10/Oct/2023:13:55:36 +0000] "POST /v1/items HTTP/1.1" 201 512 "-" "curl/8.4.0"`,
	`I0316 12:34:56.789012   12345 controller.go:123] reconciling deployment default/web-7d4b9c6f5-x2x9k`,
	`[2026-01-05T11:22:33.444+01:00] INFO: worker 4021973 picked job 0187-3345-2210 from queue mail`,
	`WARN  2026-03-04 05:06:07 pool-1-thread-17 HikariPool-1 - Thread starvation or clock leap detected (housekeeper delta=1m2s113ms).`,
	`level=error ts=1710928374.123 caller=main.go:231 component=tsdb err="open block 01HS3K4Z5D9WJ: no such file"`,
	`1710928374123 DEBUG kafka.server offset=1200345678 partition=12 lag=0`,
	`nginx: [emerg] bind() to 0.0.0.0:80 failed (98: Address already in use)`,
	`redis_1  | 1:M 03 Nov 2025 09:41:22.153 * Ready to accept connections tcp`,
	`postgres_1 | 2025-11-03 09:41:25.731 UTC [1] LOG:  listening on IPv4 address "0.0.0.0", port 5432`,
	`2025/11/03 09:41:25 http: TLS handshake error from 172.17.0.1:52814: EOF`,
	`GC(1203) Pause Young (Normal) (G1 Evacuation Pause) 512M->128M(2048M) 12.345ms`,
	`cache hit ratio=0.98231 hits=99120384 misses=1820021 evictions=4410`,
	`order=400-123-4567 state=shipped sku=8412-3345-01 qty=3`,
	`ticket 2024-001-8872 moved to done by automation in 00:12:41`,
	`[12:01:44] [Server thread/INFO]: Preparing spawn area: 83%`,
	`E/AndroidRuntime(12345): FATAL EXCEPTION: main`,
	`audit: type=1400 audit(1699012345.678:91): apparmor="DENIED" operation="open" pid=3021 comm="nginx"`,
	`[ 4055.120931] EXT4-fs (sda1): mounted filesystem with ordered data mode. Opts: (null)`,
	`Aug 19 00:39:20 db-01 systemd[1]: Started Session 4821 of user root.`,
	`retry 3/5 after 1.6180339887s: dial tcp 192.168.14.22:6379: connect: connection refused`,
	`user_id=5550134987 session=9f86d081884c7d65 action=login ok=true`,
	`request_id=4155550199 tenant=42 latency=0.0213s`,
	`ts=20251103094125 shard=07 rows=8005550199`,
	`[worker-12] processed 1234567890 bytes in 12.34s (100.0 MB/s)`,
	// Go.
	`import "github.com/google/go-github/v89/github"`,
	`func (s *Server) ListenAndServe(addr string) error { return s.srv.Serve(l) }`,
	`const maxRetries, baseDelay = 5, 250 * time.Millisecond // doubled each time`,
	`ctx, cancel := context.WithTimeout(r.Context(), 30*time.Second)`,
	`var ErrNotFound = errors.New("store: not found")`,
	`t.Errorf("got %d, want %d", len(rows), 1234567890)`,
	`type Person struct { Name string; Age int }`,
	`//go:generate stringer -type=Kind -output=kind_string.go`,
	`return time.Date(2009, time.November, 10, 23, 0, 0, 0, time.UTC)`,
	`	google.golang.org/grpc v1.64.0 // indirect`,
	// Python.
	`from collections.abc import Mapping, Sequence`,
	`class John(Base):`,
	`def send(self, to: str = "127.0.0.1", port: int = 8080) -> None:`,
	`    assert parse("2021-03-04") == date(2021, 3, 4)`,
	`df = pd.read_csv("data_2024-01-15.csv", parse_dates=["created_at"])`,
	`@pytest.mark.parametrize("value, want", [(1, "one"), (2, "two")])`,
	`raise ValueError(f"bad port {port!r}, expected 1024-65535")`,
	`np.testing.assert_allclose(loss, 0.6931471805599453, rtol=1e-7)`,
	`  File "/usr/lib/python3.11/site-packages/requests/adapters.py", line 501, in send`,
	`torch.manual_seed(1234567890); x = torch.randn(16, 3, 224, 224)`,
	// JavaScript and TypeScript.
	`import { createServer } from "node:http";`,
	`const res = await fetch("https://api.brightfield.com/v2/users?limit=50");`,
	`export default class UserCard extends React.Component<Props> {`,
	`  "lodash": "^4.17.21",`,
	`if (window.location.hostname === "localhost") { debug = true; }`,
	`npm WARN deprecated har-validator@5.1.5: this library is no longer supported`,
	`expect(formatPhone("x")).toBe(undefined);`,
	`setTimeout(() => resolve(), 1000 * 60 * 15);`,
	`document.cookie = "sid=38afes7a8; Max-Age=3600; Path=/; Secure";`,
	// Java, Kotlin.
	`import java.util.concurrent.ConcurrentHashMap;`,
	`public static void main(String[] args) throws IOException {`,
	`	at org.springframework.web.servlet.DispatcherServlet.doDispatch(DispatcherServlet.java:1067)`,
	`Caused by: java.lang.NullPointerException: Cannot invoke "String.length()" because "s" is null`,
	`private final Map<String, List<Order>> ordersByCustomer = new HashMap<>();`,
	`val deferred = async(Dispatchers.IO) { repository.load(id = 123456789L) }`,
	// Rust, C, C++.
	`use std::net::{IpAddr, Ipv4Addr};`,
	`let addr: SocketAddr = "0.0.0.0:3000".parse().unwrap();`,
	`error[E0382]: borrow of moved value: ` + "`config`",
	`#include <sys/types.h>`,
	`#define BUFFER_SIZE 1048576`,
	`static const uint32_t crc_table[4] = {0x00000000, 0x77073096, 0xee0e612c, 0x990951ba};`,
	`std::vector<std::pair<int, int>> edges = {{1, 2}, {3, 4}};`,
	`printf("%02x:%02x:%02x\n", mac[0], mac[1], mac[2]);`,
	`int daysIn[12] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};`,
	// Ruby, PHP, C#.
	`gem "rails", "~> 7.1.3"`,
	`User.where(created_at: 2.days.ago..Time.now).find_each { |u| u.touch }`,
	`$stmt = $pdo->prepare('SELECT id FROM users WHERE id = ?');`,
	`public async Task<IActionResult> Index(int? page) => View(await _repo.GetPage(page ?? 1));`,
	// Shell and its answers.
	`$ kubectl get pods -n kube-system -o wide`,
	`coredns-5d78c9869d-7xkzr   1/1   Running   0   12d   10.244.0.3   node-1`,
	`-rw-r--r-- 1 root root 4096 Nov 23 01:35 docker-compose.yml`, //nolint:dupword // user and group
	`drwxr-xr-x  5 dev dev      160 Mar  9 18:08 node_modules`,    //nolint:dupword // user and group
	`curl -sSL -H "Accept: application/json" http://localhost:9200/_cat/indices?v`,
	`docker run --rm -p 127.0.0.1:5432:5432 -e POSTGRES_PASSWORD=secret postgres:16.2-alpine`,
	`ssh -i ~/.ssh/id_ed25519 -L 8080:localhost:80 deploy@10.1.2.3`,
	`tar -xzf onnxruntime-linux-x64-1.17.1.tgz -C /opt --strip-components=1`,
	`PING 192.168.1.1 (192.168.1.1) 56(84) bytes of data.`,
	`64 bytes from 10.0.0.1: icmp_seq=1 ttl=64 time=0.045 ms`,
	`Filesystem     1K-blocks      Used Available Use% Mounted on`,
	`/dev/sda1      102687672  41254388  56173948  43% /`,
	`Successfully installed numpy-1.26.4 pandas-2.2.1 python-dateutil-2.9.0.post0`,
	`openssl 3.0.13-1ubuntu1.1 amd64 [upgradable from: 3.0.10-1ubuntu2]`,
	`ii  libssl3:amd64  3.0.2-0ubuntu1.15  amd64  Secure Sockets Layer toolkit`,
	`Chrome/91.0.4472.114 Safari/537.36 Edg/91.0.864.59`,
	`PID USER      PR  NI    VIRT    RES    SHR S  %CPU  %MEM     TIME+ COMMAND`,
	`20713 root      20   0 1234567 891011  12131 S   0.3   1.2   0:04.56 signalbox`,
	`go: downloading golang.org/x/sys v0.18.0`,
	`ok  	signalbox/classify/pii	0.658s	coverage: 91.3% of statements`,
	`Collecting requests==2.31.0 (from -r requirements.txt (line 3))`,
	`sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08`,
	// Git.
	`commit 339360b08d41d8cd98f00b204e9800998ecf8427`,
	`Date:   Mon Mar 11 16:32:01 2024 +0100`,
	`index f652016a..00dfa689 100644`,
	`@@ -486,7 +486,7 @@ func TestDecode(t *testing.T) {`,
	` 5 files changed, 1028 insertions(+), 4155 deletions(-)`,
	`* 7ed34c6 (HEAD -> main, origin/main) fix: off by one in ring buffer`,
	`rename from internal/cli/old_name.go`,
	`diff --git a/CHANGELOG.md b/CHANGELOG.md`,
	`+	opts.Timeout = 15 * time.Second`,
	`-  version: 2.4.13`,
	`a61749ae (dev 2025-07-15 22:08:43 -0700 117)     return n`,
	// SQL.
	`SELECT o.id, COUNT(*) AS n FROM orders o WHERE o.created_at >= '2024-01-01' GROUP BY o.id;`,
	`INSERT INTO events (id, ts, kind) VALUES (1002003004, '2025-11-03 09:41:25', 'click');`,
	`CREATE TABLE person (id BIGINT PRIMARY KEY, name TEXT NOT NULL, born DATE);`,
	`UPDATE accounts SET balance = balance - 100.00 WHERE account_no = 4021973311;`,
	`ALTER TABLE orders ADD CONSTRAINT fk_customer FOREIGN KEY (customer_id) REFERENCES customers(id);`,
	`Seq Scan on orders  (cost=0.00..18334.00 rows=1000000 width=12) (actual time=0.012..98.334 rows=1000000 loops=1)`,
	// Configuration.
	`listen_addresses = '127.0.0.1,::1'`,
	`server_name api.brightfield.com www.brightfield.com;`,
	`DATABASE_URL=postgres://app:secret@10.0.0.5:5432/app?sslmode=disable`,
	`image: ghcr.io/acme/proxy:v1.4.2@sha256:0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f9`,
	`    cidr_block = "172.31.0.0/16"`,
	`  - uses: actions/checkout@v4`,
	`  python-version: ["3.9", "3.10", "3.11"]`,
	`schedule: "15 4 * * 1-5"`,
	`nameserver 8.8.8.8`,
	`max_connections = 1000000000`,
	`log_format main '$remote_addr - $remote_user [$time_local] "$request"';`,
	`<property name="hibernate.dialect" value="org.hibernate.dialect.PostgreSQLDialect"/>`,
	`replicas: 3`,
	`allow_origins: ["http://localhost:3000", "https://app.brightfield.com"]`,
	`timestamp_format = "%Y-%m-%dT%H:%M:%S%z"`,
	// JSON and other data.
	`{"id": 9007199254740993, "uuid": "123e4567-e89b-12d3-a456-426614174000", "ok": true}`,
	`"created_at": "2024-05-06T07:08:09Z", "updated_at": "2024-05-06T07:08:09Z",`,
	`"bbox": [-122.4194155, 37.7749295, -122.3894155, 37.8049295],`,
	`"isbn": "978-3-16-148410-0", "ean": "4006381333931", "price": 19.99,`,
	`{"lat":52.5200066,"lon":13.4049540,"alt":34.0}`,
	`"engines": { "node": ">=18.12.0", "npm": "8.19.2.1" },`,
	`<dependency><groupId>org.apache.commons</groupId><version>3.12.0</version></dependency>`,
	`{"version":"1.2.3.4","build":"20240115.1"}`,
	`"phone_pattern": "^[0-9]{3}-[0-9]{3}-[0-9]{4}$"`,
	`id,sku,qty,ts` + "\t" + `1001,8412-3345-01,3,2024-01-15T00:00:00Z`,
	`0000000 7f45 4c46 0201 0100 0000 0000 0000 0000`,
	`00:1A:2B:3C:4D:5E dev eth0 lladdr REACHABLE`,
	`x-ratelimit-reset: 1699012345`,
	`Last-Modified: Wed, 21 Oct 2015 07:28:00 GMT`,
	`Set-Cookie: session=abc123; Expires=Wed, 21 Oct 2025 07:28:00 GMT; HttpOnly`,
	// Markdown of repositories.
	`- fix: crash on empty input ([#3563](https://github.com/acme/proxy/issues/3563)) ([0659a8d](https://github.com/acme/proxy/commit/0659a8d))`,
	`## [2.8.0](https://github.com/acme/proxy/compare/v2.7.0...v2.8.0) (2025-10-27)`,
	"Use `strings.Builder` instead of `fmt.Sprintf` in `classify/pii/decode.go`.",
	`[![build](https://img.shields.io/badge/build-passing-green.svg)](https://travis-ci.org/acme/proxy)`,
	// Stack traces and compilers.
	`goroutine 1 [running]:`,
	`	/usr/local/go/src/runtime/cgocall.go:167 +0x4b fp=0x341edbc20a48 sp=0x341edbc20a10 pc=0x48daeb`,
	`    at Object.<anonymous> (/app/src/index.js:12:15)`,
	`src/main.rs:42:17: warning: unused variable: ` + "`peer_addr`",
	`ld: warning: object file (libfoo.a(bar.o)) was built for newer macOS version (13.0) than being linked (12.0)`,
	`Segmentation fault (core dumped) at 0x00007f8679a48b96 in libonnxruntime.so.1.30.0`,
}

// personalInLines are the same kinds of lines with someone's data in them.
var personalInLines = []struct{ text, want string }{
	{
		`185.25.93.95 - - [10/Oct/2023:13:55:36 -0700] "GET / HTTP/1.0" 200 2326`,
		"IP_ADDRESS:185.25.93.95",
	},
	{`level=info msg="login" client=92.127.194.23 status=200`, "IP_ADDRESS:92.127.194.23"},
	{`{"email": "jo.doe@brightfield.com", "ok": true}`, "EMAIL_ADDRESS:jo.doe@brightfield.com"},
	{`Author: jo <jo.doe@brightfield.com>`, "EMAIL_ADDRESS:jo.doe@brightfield.com"},
	{`{"id": 7, "phone": "415-555-0199", "active": true}`, "PHONE_NUMBER:415-555-0199"},
	{`user=7 phone=+14155550199 sms=sent`, "PHONE_NUMBER:+14155550199"},
	{`{"card": "4111 1111 1111 1111", "cvv": "***"}`, "CREDIT_CARD:4111 1111 1111 1111"},
	{
		`INSERT INTO payee (iban) VALUES ('DE89370400440532013000');`,
		"IBAN_CODE:DE89370400440532013000",
	},
	{`"dob": "1984-03-12", "country": "SE"`, "DATE_TIME:1984-03-12"},
	{`{"ssn":"123-45-6789"}`, "US_SSN:123-45-6789"},
	{`"zip": "90210", "state": "CA"`, "ZIP_CODE:90210"},
	{`{"age": 43, "plan": "pro"}`, "AGE:43"},
}

// maxTechnical is the share of technical lines that may have a finding.
const maxTechnical = 0.05

func TestTechnicalLinesAreNobodysData(t *testing.T) {
	const least = 150
	if len(technical) < least {
		t.Fatalf("%d lines, want %d", len(technical), least)
	}
	wrong := 0
	for _, line := range technical {
		if got := Patterns(line, nil); len(got) > 0 {
			wrong++
			t.Logf("%q gave %q", line, found(line, got))
		}
	}
	if share := float64(wrong) / float64(len(technical)); share > maxTechnical {
		t.Errorf("%d of %d technical lines have personal data, want at most %.0f %%", wrong,
			len(technical), 100*maxTechnical)
	}
}

func TestPersonalDataInTechnicalLinesIsFound(t *testing.T) {
	for _, tt := range personalInLines {
		got := found(tt.text, Patterns(tt.text, nil))
		if len(got) != 1 || got[0] != tt.want {
			t.Errorf("%q gave %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestPartsOfTimeStampsAreNobodysDates(t *testing.T) {
	d := decoder(t)
	for _, tt := range []struct{ text, guess string }{
		{"7:M 14 May 2025 11:02:44.318 * DB loaded from disk", "14 May 2025 11:02:44"},
		{"cache-2  | 7:M 14 May 2025 11:02:44.318 * Ready", "M 14"},
		{"cache-2  | 7:M 14 May 2025 11:02:44.318 * Ready", "44"},
		{"25/05/14 11:02:44 WARN scheduler: lost task 3", "25/05/14"},
		{"Worker::ERROR::2025-05-14 11:02:44,318::pool::41::(stop) gone", "2025-05-14 11:02:44"},
		{"# Time: 2025-05-14T11:02:44.318210Z", "2025-05-14T11:02:44.318210Z"},
		{"#Date: 2025-05-14 11:02:44", "2025-05-14 11:02:44"},
	} {
		toks := tokens(t, tt.text, []piece{{tt.guess, "B-DATE_TIME", 0.99}})
		if got := d.Fuse(tt.text, Patterns(tt.text, nil), toks, nil); len(got) > 0 {
			t.Errorf("%q, guess %q gave %q", tt.text, tt.guess, scored(tt.text, got))
		}
	}
	for _, text := range []string{
		"She was born on 14 May 1985 and came at 11:02:44.",
		"[10:15:30] 14 May 1985 is her birthday, she said",
		"2024-01-02 10:11:12 14 May 1985 is my birthday, I think",
	} {
		if got := found(text, Patterns(text, nil)); !slices.Contains(got, "DATE_TIME:14 May 1985") {
			t.Errorf("%q gave %q, want the date", text, got)
		}
	}
}
