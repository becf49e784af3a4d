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
	const char *value; /* the placeholder of its value in the help; NULL: it takes none */
	const char *help;
};

enum { VV_ARGS_OPTIONS = 24, VV_ARGS_SETTINGS = 64 };

struct vv_args {
	int argc;
	char **argv;
	int at;                              /* the next word */
	const char *verb;                    /* NULL until it is known */
	/* the verb's own; they hide shared ones of the same letter */
	const struct vv_args_option *option;
	/* by number in `option`; "" for those without a value; NULL: not given */
	const char *value[VV_ARGS_OPTIONS];
	bool by_letter[VV_ARGS_OPTIONS];     /* given as -n, not as --name */
	const char **operand;
	size_t n_operands;
	const char *setting[VV_ARGS_SETTINGS]; /* name=value */
	size_t n_settings;
	bool json, quiet, help, version;
};

/* The options of all verbs, for the help. */
const struct vv_args_option *vv_args_shared(void);

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
