/* The command line: a table of options per verb, and the ones that all verbs share. Options and
 * operands may be mixed; "--" ends the options. */
#ifndef VV_CLI_BASE_ARGS_H
#define VV_CLI_BASE_ARGS_H

#include "base/conf.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vv_args_option {
	const char *name;  /* without the dashes; NULL ends a table */
	char letter;       /* or 0 */
	/* The placeholder of its value, or NULL. Words in lower case, separated by |, are values;
	 * words in capitals name their kind (cli/main/complete.c). */
	const char *value;
	/* "": an internal option. NULL: an old name or letter of the row above. Both are accepted,
	 * but not shown. */
	const char *help;
};

enum { VV_ARGS_OPTIONS = 24, VV_ARGS_SETTINGS = 64 };

struct vv_args {
	int argc;
	char **argv;
	int at;                              /* the next word */
	const char *verb;                    /* NULL until it is known */
	/* the verb's own; they come before shared ones of the same letter */
	const struct vv_args_option *option;
	/* by number in `option`; "" for those without a value; NULL: not given */
	const char *value[VV_ARGS_OPTIONS];
	const struct vv_args_option *given[VV_ARGS_OPTIONS]; /* the row, which may be an old name */
	bool by_letter[VV_ARGS_OPTIONS];     /* given as -n, not as --name */
	const char **operand;
	size_t n_operands;
	char *own_operand; /* one that was not typed; freed at the end */
	const char *setting[VV_ARGS_SETTINGS]; /* name=value */
	size_t n_settings;
	const struct vv_args_option *open;     /* the last word is this option, without its value */
	bool json, quiet, help, version;
};

/* The options of all verbs, for the help. */
const struct vv_args_option *vv_args_shared(void);

static inline bool vv_args_is_shown(const struct vv_args_option *o)
{
	return o->help && o->help[0];
}

int vv_args_init(struct vv_args *a, int argc, char **argv);
void vv_args_fini(struct vv_args *a);
/* Parses shared options up to the verb, which is then the next word. */
int vv_args_parse_front(struct vv_args *a);
/* Parses everything after the verb. */
int vv_args_parse_rest(struct vv_args *a, const char *verb, const struct vv_args_option *option);

/* The value given for an option of the verb's table, or NULL. */
const char *vv_args_value(const struct vv_args *a, const char *name);
/* If the option was given, sets an item of the table to its value. An error names the option. */
int vv_args_set(const struct vv_args *a, const char *name, struct vv_conf *c, const char *item);
/* Parses options of the verb by a table of items of the same names, with their types and limits.
 * The caller calls vv_conf_fini on `out` also after a failure. */
int vv_args_conf(const struct vv_args *a, const struct vv_conf_item *item, size_t n, struct vv_conf *out);
/* The value of an option as an integer in min..max; *out is unchanged if the option was not
 * given. */
int vv_args_number(const struct vv_args *a, const char *name, uint64_t min, uint64_t max, uint64_t *out);

#endif
