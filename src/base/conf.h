/* Configuration as one table: name, kind, default, help. The environment variable, the line in the
 * file, the option in a call and the printed help come from one row. Precedence: default < file <
 * environment < call; each value records its origin. */
#ifndef VV_BASE_CONF_H
#define VV_BASE_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum vv_conf_kind {
	VV_CONF_TEXT,
	VV_CONF_BOOL,     /* yes no true false on off 1 0 */
	VV_CONF_COUNT,    /* a whole number */
	/* bytes: 4096, 64KiB, 1MiB, 2G (KMGT are powers of 1024, with or without iB/B) */
	VV_CONF_SIZE,
	VV_CONF_DURATION, /* seconds: 90, 10m, 2h, 1.5d, 1w, 250ms */
	VV_CONF_FRACTION, /* 2% or 0.02 */
	VV_CONF_SHARE,    /* a size (16MiB), or a share of a whole that the caller knows (5%) */
	/* one of the words in `words`, "|" between them; word:N where `words` has word[:N] */
	VV_CONF_CHOICE,
};

struct vv_conf_item {
	const char *name; /* "keep-every"; VARVE_KEEP_EVERY in the environment */
	enum vv_conf_kind kind;
	const char *initial;
	/* choices; of a SHARE: other allowed words, for which vv_conf_share must not be called */
	const char *words;
	uint64_t min, max; /* for COUNT, SIZE and the size of a SHARE; max 0 = no limit */
	const char *help;
};

struct vv_conf_value {
	char *text;
	char *origin; /* "default", "varve.conf:3", "VARVE_CODEC", "options of the call" */
};

struct vv_conf {
	const struct vv_conf_item *item;
	size_t n;
	struct vv_conf_value *value;
};

int vv_conf_init(struct vv_conf *c, const struct vv_conf_item *item, size_t n);
void vv_conf_fini(struct vv_conf *c);

/* Each call checks the value by the item's kind. The error names the origin, the value and the
 * allowed values. */
int vv_conf_set(struct vv_conf *c, const char *name, const char *text, const char *origin);
/* Is the text a value of the item, which must be in the table? allowed: a description of the
 * values, as "a whole number". */
enum { VV_CONF_WORDS = 512 };
bool vv_conf_fits(const struct vv_conf *c, const char *name, const char *text, char allowed[VV_CONF_WORDS]);
/* INI: "name = value" lines, # and ; comments. A value in quotes may contain these signs; in it, a
 * backslash is before a quote or a backslash. [section] lines are checked for their form and
 * ignored. */
int vv_conf_parse(struct vv_conf *c, const char *text, size_t n, const char *origin);
/* If the file need not exist, a folder that cannot be searched counts as none. */
int vv_conf_read_file(struct vv_conf *c, const char *path, bool must_exist);
int vv_conf_read_env(struct vv_conf *c, const char *prefix);
/* "codec=zstd keep=3": pairs separated by blanks or commas. In a value, these may be in quotes or
 * after a backslash, which both do not belong to it. */
int vv_conf_read_string(struct vv_conf *c, const char *options, const char *origin);

/* name must be in the table. */
const char *vv_conf_text(const struct vv_conf *c, const char *name);
bool vv_conf_bool(const struct vv_conf *c, const char *name);
uint64_t vv_conf_number(const struct vv_conf *c, const char *name); /* COUNT, SIZE */
double vv_conf_real(const struct vv_conf *c, const char *name);     /* DURATION, FRACTION */
/* SHARE, in bytes; a percentage is taken of whole. */
uint64_t vv_conf_share(const struct vv_conf *c, const char *name, uint64_t whole);
const char *vv_conf_origin(const struct vv_conf *c, const char *name);

#endif
