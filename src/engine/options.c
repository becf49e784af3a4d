#include "engine/options.h"
#include "base/env.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include <stdlib.h>
#include <string.h>

static const struct vv_conf_item table[] = {
	{ "mode", VV_CONF_CHOICE, "async", "async|sync", 0, 0,
	  "when varve_checkpoint returns; async: when the regions may be changed; sync: when the epoch is durable" },
	{ "tracker", VV_CONF_CHOICE, "auto", "auto|wpasync|sigbus|mprotect|digest", 0, 0,
	  "method that finds written pages; digest: compare all; auto: the best one of the kernel, chosen per region" },
	{ "buffer", VV_CONF_SHARE, "16MiB", NULL, 0, 0,
	  "memory for copies of pending pages: a size, or a share of the regions such as 5%" },
	{ "order", VV_CONF_CHOICE, "adaptive", "adaptive|address", 0, 0,
	  "pages to store first: those expected to be written soonest, or the lowest address" },
	{ "eager", VV_CONF_BOOL, "yes", NULL, 0, 0,
	  "fill the buffer with copies before varve_checkpoint returns; no: copy at first writes" },
	{ "granule", VV_CONF_SIZE, "0", NULL, 0, 1 << 18,
	  "write-protect pending memory in ranges of this size; 0 = the cheapest size" },
	{ "dedup", VV_CONF_BOOL, "yes", NULL, 0, 0, "no: store all dirty chunks, even if their content is known (for comparison)" },
	{ "audit", VV_CONF_COUNT, "0", NULL, 0, UINT32_MAX,
	  "number of random pages to compare among those that the tracker reports as unchanged" },
	{ "codec", VV_CONF_CHOICE, "auto", "none|lz4|zstd[:LEVEL]|auto", 0, 0,
	  "compression of new data; auto: only if the store is slower than the compressor and a sample shrinks" },
	{ "delta", VV_CONF_CHOICE, "auto", "none|auto|max", 0, 0,
	  "varve pack: store blocks as differences to the epoch before; auto: if a restart takes little longer; max: if smaller" },
	{ "block", VV_CONF_SIZE, "1MiB", NULL, 4096, 64 << 20, "size of the blocks in which new data are compressed and checked" },
	{ "chunk", VV_CONF_SIZE, "4096", NULL, 32, 1 << 20, "size of the chunks for deduplication" },
	{ "grain", VV_CONF_SIZE, "0", NULL, 0, 4096,
	  "deduplicate in grains of this size, 32 to 4096 bytes; 0: host memory in chunks, device memory in grains of 256" },
	{ "method", VV_CONF_CHOICE, "run", "full|basic|list|tree|run", 0, 0,
	  "deduplication among grains: nothing, changes, copies; listed singly, by a tree, or in runs (docs/dedup.md)" },
	{ "history", VV_CONF_SHARE, "auto", "auto", 0, 0,
	  "memory for digests of stored content: a size, or a share of the regions, also for each set of grains; auto: "
	  "at most 2% of the regions beside the buffer, for grains 15%" },
	{ "placing", VV_CONF_CHOICE, "device", "host|device", 0, 0,
	  "processor that checks and places data for device memory in a restart" },
	{ "stage", VV_CONF_SHARE, "25%", NULL, 0, 0,
	  "host memory for new grains: a size, or a share of the available memory; with more new data, the call returns "
	  "when the rest is stored" },
	{ "verify", VV_CONF_CHOICE, "digest", "digest|bytes", 0, 0,
	  "bytes: compare grains with equal digests byte by byte if both are in memory" },
	{ "digest", VV_CONF_CHOICE, "xxh3", "xxh3|sha256", 0, 0,
	  "hash function that identifies a chunk's content; sha256 if an attacker could forge content" },
	{ "threads", VV_CONF_COUNT, "0", NULL, 0, 256,
	  "threads that hash and compress, including the caller's; 0 = one per core, at most 16" },
	{ "keep", VV_CONF_COUNT, "0", NULL, 0, UINT32_MAX, "number of epochs to keep, newest first; 0 = all" },
	{ "keep-every", VV_CONF_COUNT, "0", NULL, 0, UINT32_MAX,
	  "keep also the epochs whose number is a multiple of this one; 0 = none" },
	{ "keep-within", VV_CONF_DURATION, "0", NULL, 0, 0,
	  "keep also the epochs that are at most this much older than the newest one, such as 7d; 0 = none" },
	{ "gc", VV_CONF_CHOICE, "auto", "auto|off", 0, 0, "reclaim the space of dropped epochs during a session with keep" },
	{ "collective", VV_CONF_CHOICE, "exact", "exact|topk|none", 0, 0,
	  "store content of several ranks once: all of it, the most frequent `threshold` chunks, or not" },
	{ "alike", VV_CONF_CHOICE, "host", "host|none", 0, 0,
	  "images of processes: one rank compresses the similar memory of its host; none: each rank its own" },
	{ "threshold", VV_CONF_COUNT, "131072", NULL, 1, 1 << 24,
	  "collective=topk: number of chunks about which the ranks inform each other" },
	{ "copies", VV_CONF_COUNT, "1", NULL, 1, 16, "number of hosts that store content which several hosts hold" },
	{ "redundancy", VV_CONF_TEXT, "none", NULL, 0, 0,
	  "parity over ranks' stores: none; partner: a copy; xor:N: bears the loss of 1 of N failure domains; rs:K+M: of M of K+M" },
	{ "failure-domain", VV_CONF_TEXT, "host", NULL, 0, 0,
	  "what fails together: host; store: each store by itself; or this rank's own name for it, such as a rack" },
	{ "aggregate", VV_CONF_TEXT, "1", NULL, 0, 0,
	  "number of ranks that write their layers into one file; node: all ranks of a host" },
	{ "timeout", VV_CONF_DURATION, "10m", NULL, 0, 0, "time that a rank waits for the others, and varve_close for copies to tiers" },
	{ "tiers", VV_CONF_TEXT, "", NULL, 0, 0,
	  "further stores, to which epochs are copied in the background: STORE every=N keep=N bandwidth=SIZE mtbf=TIME; STORE ..." },
	{ "interval", VV_CONF_DURATION, "0", NULL, 0, 0, "varve_due: time from one checkpoint to the next" },
	{ "overhead", VV_CONF_FRACTION, "0", NULL, 0, 0, "varve_due: share of the run time that checkpoints may take" },
	{ "mtbf", VV_CONF_DURATION, "0", NULL, 0, 0,
	  "varve_due: mean time between failures; the interval follows from it and the cost of a checkpoint (Daly)" },
	{ "signal", VV_CONF_CHOICE, "USR1", "USR1|USR2|none", 0, 0, "varve_due: the signal that requests a checkpoint" },
	{ "interpose", VV_CONF_BOOL, "yes", NULL, 0, 0,
	  "warn if libvarve_interpose.so, which makes system calls wait for regions, is not loaded" },
	{ "rehearse", VV_CONF_COUNT, "0", NULL, 0, 100000,
	  "N: the program is replaced by `varve run --rehearse N` of itself, which tries a restart; 0 = no" },
	{ "stats", VV_CONF_TEXT, "", NULL, 0, 0, "append a line of JSON per epoch to this file" },
	{ "io", VV_CONF_CHOICE, "auto", "auto|direct|buffered", 0, 0,
	  "way to the disk; direct: past the page cache; auto: direct for large files, if the file system can" },
	{ "metrics", VV_CONF_TEXT, "", NULL, 0, 0,
	  "write the session's state for Prometheus into this folder after each epoch, one file to a rank" },
	{ "store", VV_CONF_TEXT, "", NULL, 0, 0, "store of the commands that name none; empty = it must be named" },
	{ "bandwidth", VV_CONF_SIZE, "0", NULL, 0, 0, "bytes per second that a flush may write; 0 = no limit" },
	{ "s3-endpoint", VV_CONF_TEXT, "", NULL, 0, 0, "URL of an S3 server; empty = AWS" },
	{ "s3-region", VV_CONF_TEXT, "", NULL, 0, 0, "S3 region; empty = $AWS_REGION or us-east-1" },
	{ "s3-path-style", VV_CONF_BOOL, "no", NULL, 0, 0, "put the bucket into the path, not into the host name" },
	{ "s3-retries", VV_CONF_COUNT, "5", NULL, 0, 100, "number of attempts after the first" },
	{ "s3-part", VV_CONF_SIZE, "16MiB", NULL, 5 << 20, 1ull << 30, "part size of large S3 uploads" },
	{ "log", VV_CONF_CHOICE, "warn", "error|warn|info", 0, 0, "messages on stderr" },
};

/* The user's file: $XDG_CONFIG_HOME/varve.conf or ~/.config/varve.conf. As XDG demands, a folder
 * that is no absolute path is ignored. */
static int read_user_file(struct vv_conf *c)
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	char *path;
	int rc;

	if (config && config[0] == '/')
		path = vv_mem_printf("%s/varve.conf", config);
	else if (home && home[0] == '/')
		path = vv_mem_printf("%s/.config/varve.conf", home);
	else
		return 0;
	rc = path ? vv_conf_read_file(c, path, false) : VV_ENOMEM;
	vv_mem_free(path);
	return rc;
}

int vv_options_load(struct vv_conf *c, const char *call)
{
	const char *file = vv_env_get("VARVE_CONF");
	int rc = vv_conf_init(c, table, sizeof(table) / sizeof(table[0]));

	if (rc == 0)
		rc = vv_conf_read_file(c, "/etc/varve.conf", false);
	if (rc == 0)
		rc = read_user_file(c);
	if (rc == 0)
		rc = vv_conf_read_file(c, file ? file : "varve.conf", file != NULL);
	if (rc == 0)
		rc = vv_conf_read_env(c, "VARVE_");
	if (rc == 0)
		rc = vv_conf_read_string(c, call, "options of the call");
	if (rc)
		vv_conf_fini(c);
	return rc;
}

uint64_t vv_options_history(const struct vv_conf *c, uint64_t in_chunks, uint64_t other)
{
	if (strcmp(vv_conf_text(c, "history"), "auto") != 0)
		return vv_conf_share(c, "history", in_chunks + other);
	/* the content of memory in chunks is known anyway */
	return other / 100 * 15 + other % 100 * 15 / 100;
}

void vv_options_apply_log(const struct vv_conf *c)
{
	const char *log = vv_conf_text(c, "log");

	vv_log_set_level(log[0] == 'e' ? VV_LOG_ERROR : log[0] == 'w' ? VV_LOG_WARN : VV_LOG_INFO);
}

static const char *or_null(const char *s)
{
	return s[0] ? s : NULL;
}

static enum vv_store_io io_of(const struct vv_conf *c)
{
	const char *io = vv_conf_text(c, "io");

	return strcmp(io, "direct") == 0 ? VV_STORE_IO_DIRECT : strcmp(io, "buffered") == 0 ? VV_STORE_IO_BUFFERED : VV_STORE_IO_AUTO;
}

struct vv_store_options vv_options_store(const struct vv_conf *c, bool create)
{
	return (struct vv_store_options){
		.io = io_of(c),
		.bandwidth = vv_conf_number(c, "bandwidth"),
		.create = create,
		.s3_endpoint = or_null(vv_conf_text(c, "s3-endpoint")),
		.s3_region = or_null(vv_conf_text(c, "s3-region")),
		.s3_path_style = vv_conf_bool(c, "s3-path-style"),
		.s3_retries = (unsigned)vv_conf_number(c, "s3-retries"),
		.s3_part_bytes = vv_conf_number(c, "s3-part"),
	};
}

static bool is_among(const char *name, const char *const *list)
{
	while (*list && strcmp(*list, name) != 0)
		list++;
	return *list != NULL;
}

enum vv_options_tier vv_options_tier(const char *name)
{
	static const char *const everyday[] = { "mode",  "keep",  "keep-every", "keep-within", "interval", "overhead", "mtbf", "signal",
						"codec", "stats", "log",        "timeout",     "threads",  "store",    NULL };
	static const char *const comparison[] = { "eager", "order", "granule", "dedup", "method", "threshold", NULL };

	if (is_among(name, everyday))
		return VV_OPTIONS_EVERYDAY;
	return is_among(name, comparison) ? VV_OPTIONS_COMPARISON : VV_OPTIONS_TUNING;
}
