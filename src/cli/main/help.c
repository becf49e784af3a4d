#include "cli/main/help.h"
#include "cli/main/main.h"
#include <stdio.h>
#include <string.h>

enum { COLUMN = 24 };

static const char under[] = "\n                               ";

static void help_options(struct vv_out *o, const struct vv_args_option *table)
{
	for (; table && table->name; table++) {
		char name[80];

		if (!vv_args_is_shown(table))
			continue;
		snprintf(name, sizeof(name), "--%s%s%s", table->name, table->value ? " " : "",
			 table->value ? table->value : "");
		vv_out_printf(o, "  %c%c%c %-24s%s%s\n", table->letter ? '-' : ' ', table->letter ? table->letter : ' ',
			      table->letter ? ',' : ' ', name, strlen(name) > COLUMN ? under : " ", table->help);
	}
}

static void help_all(struct vv_out *o)
{
	const struct vv_cmd *cmd;

	vv_out_printf(o, "usage: varve VERB [OPTION...] [OPERAND...]\n\n");
	for (size_t i = 0; (cmd = vv_main_verb(i)); i++)
		vv_out_printf(o, "  %-10s %s\n", cmd->name, cmd->brief);
	vv_out_printf(o, "  %-10s %s\n\nOptions of all verbs:\n", "help", "shows more about a verb: varve help VERB");
	help_options(o, vv_args_shared());
	vv_out_printf(o, "\nSTORE is a path, dir:PATH, ram:NAME (in /dev/shm) or s3://BUCKET/PREFIX. It may\n"
			 "be left out if the option store is set, as by VARVE_STORE: varve show heat@3.\n"
			 "Exit status: 0 success, 1 damage or a difference, 2 usage or any other error.\n");
}

static void help_verb(struct vv_out *o, const struct vv_cmd *cmd)
{
	vv_out_printf(o, "usage: varve %s [OPTION...] %s\n\n%s\n", cmd->name, cmd->operands, cmd->help);
	if (cmd->option && cmd->option[0].name) {
		vv_out_printf(o, "\nOptions:\n");
		help_options(o, cmd->option);
	}
	vv_out_printf(o, "\nOptions of all verbs:\n");
	help_options(o, vv_args_shared());
}

/* ---- as JSON --------------------------------------------------------------------------------- */

/* The old names and letters of an option: the rows below it without a text. */
static void put_old(struct vv_json *j, const struct vv_args_option *o)
{
	vv_json_array(j, "old");
	for (const struct vv_args_option *old = o + 1; old->name && !old->help; old++)
		if (old->letter)
			vv_json_text(j, NULL, (char[]){'-', old->letter, 0});
		else
			vv_json_text(j, NULL, old->name);
	vv_json_end(j);
}

static void put_options(struct vv_json *j, const struct vv_args_option *o)
{
	vv_json_array(j, "options");
	for (; o && o->name; o++) {
		if (!vv_args_is_shown(o))
			continue;
		vv_json_object(j, NULL);
		vv_json_text(j, "name", o->name);
		vv_json_text(j, "letter", o->letter ? (char[]){o->letter, 0} : NULL);
		vv_json_text(j, "value", o->value);
		vv_json_text(j, "help", o->help);
		put_old(j, o);
		vv_json_end(j);
	}
	vv_json_end(j);
}

static void put_verb(struct vv_json *j, const struct vv_cmd *cmd)
{
	vv_json_object(j, NULL);
	vv_json_text(j, "name", cmd->name);
	vv_json_text(j, "operands", cmd->operands);
	vv_json_text(j, "brief", cmd->brief);
	vv_json_text(j, "help", cmd->help);
	put_options(j, cmd->option);
	vv_json_end(j);
}

static void put_help(struct vv_json *j, const struct vv_cmd *only)
{
	const struct vv_cmd *cmd;

	vv_json_object(j, NULL);
	vv_json_array(j, "verbs");
	for (size_t i = 0; (cmd = vv_main_verb(i)); i++)
		if (!only || cmd == only)
			put_verb(j, cmd);
	vv_json_end(j);
	put_options(j, vv_args_shared());
}

int vv_help_show(struct vv_verb_context *job, bool json, const char *name)
{
	const struct vv_cmd *cmd = NULL;
	int rc = name && strcmp(name, "help") != 0 ? vv_main_find(name, &cmd) : 0;

	if (rc)
		return rc;
	if (json)
		put_help(&job->json, cmd);
	else if (cmd)
		help_verb(&job->out, cmd);
	else
		help_all(&job->out);
	return 0;
}
