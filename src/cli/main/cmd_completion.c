#include "base/err.h"
#include "cli/base/verb_context.h"
#include "cli/main/complete.h"
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { SECONDS = 2 }; /* of waiting for a file system */

/* Each script hands the words of the line to `varve completion words` and shows the answer. */
static const char bash[] =
	"# bash completion of varve: made by 'varve completion bash'\n"
	"_varve() {\n"
	"	local line=${COMP_LINE:0:COMP_POINT} words=() word i text breaks quotes=\"[\\\\\\\\\\\"']\"\n"
	"	# bash splits words at : = @, too: parts with no blank between them are one word\n"
	"	for ((i = 0; i <= COMP_CWORD; i++)); do\n"
	"		word=${COMP_WORDS[i]}\n"
	"		if [[ $i == 0 || $line == [[:space:]]* ]]; then\n"
	"			line=${line#\"${line%%[![:space:]]*}\"}\n"
	"			words+=(\"\")\n"
	"		fi\n"
	"		((${#word} > ${#line})) && word=$line\n"
	"		words[-1]+=$word\n"
	"		line=${line#\"$word\"}\n"
	"	done\n"
	"	words=(\"${words[@]//$quotes/}\")\n"
	"	word=${words[-1]}\n"
	"	breaks=${COMP_WORDBREAKS//[^:=@]/}\n"
	"	[[ $breaks ]] && breaks=${word%\"${word##*[$breaks]}\"}\n"
	"	breaks=${breaks%@} # it belongs to the part that readline replaces\n"
	"	COMPREPLY=()\n"
	"	while IFS=$'\\t' read -r text _; do\n"
	"		case $text in\n"
	"		:files) compopt -o default ;;\n"
	"		:folders) compopt -o dirnames ;;\n"
	"		:commands) mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -c -- \"$word\") ;;\n"
	"		*=) compopt -o nospace && COMPREPLY+=(\"${text#\"$breaks\"}\") ;;\n"
	"		*) COMPREPLY+=(\"${text#\"$breaks\"}\") ;;\n"
	"		esac\n"
	"	done < <(command \"${words[0]/#\\~\\//$HOME/}\" completion words -- \"${words[@]:1}\" 2>/dev/null)\n"
	"}\n"
	"complete -F _varve varve varve-mpi\n";

static const char zsh[] =
	"#compdef varve varve-mpi\n"
	"# zsh completion of varve: made by 'varve completion zsh'\n"
	"_varve() {\n"
	"	local line text tab=$'\\t'\n"
	"	local -a texts shown open opened\n"
	"	for line in \"${(@f)$(command ${(Q)words[1]} completion words -- \"${(@Q)words[2,CURRENT-1]}\" \"${(Q)PREFIX}\" 2>/dev/null)}\"; do\n"
	"		text=${line%%$tab*}\n"
	"		case $text in\n"
	"		:files) _files ;;\n"
	"		:folders) _files -/ ;;\n"
	"		:commands) _command_names -e ;;\n"
	"		'') ;;\n"
	"		*=) open+=($text) opened+=(\"$text  ${line#*$tab}\") ;;\n"
	"		*) texts+=($text) shown+=(\"$text  ${line#*$tab}\") ;;\n"
	"		esac\n"
	"	done\n"
	"	compadd -l -d shown -a texts\n"
	"	compadd -l -S '' -d opened -a open\n"
	"}\n"
	"if [[ $funcstack[1] == _varve ]]; then _varve \"$@\"; else compdef _varve varve varve-mpi; fi\n";

static const char fish[] =
	"# fish completion of varve: made by 'varve completion fish'\n"
	"function __varve_complete\n"
	"	set -l words (commandline -opc)\n"
	"	set -l word (commandline -ct | string unescape)\n"
	"	test (count $word) = 0; and set word ''\n"
	"	for line in (command $words[1] completion words -- $words[2..-1] $word 2>/dev/null)\n"
	"		switch $line\n"
	"			case :files\n"
	"				__fish_complete_path $word\n"
	"			case :folders\n"
	"				__fish_complete_directories $word ''\n"
	"			case :commands\n"
	"				__fish_complete_command\n"
	"			case '*'\n"
	"				echo $line\n"
	"		end\n"
	"	end\n"
	"end\n"
	"complete -c varve -f -a '(__varve_complete)'\n"
	"complete -c varve-mpi -f -a '(__varve_complete)'\n";

static const struct {
	const char *name, *text;
} scripts[] = { { "bash", bash }, { "zsh", zsh }, { "fish", fish } };

static void give_up(int signal)
{
	(void)signal;
	_exit(0);
}

static int run(struct vv_verb_context *job)
{
	const struct vv_args *args = job->args;

	if (args->n_operands > 1 && strcmp(args->operand[0], "words") != 0)
		return vv_err_set(VV_EINVAL, "completion: '%s' is one word too many", args->operand[1]);
	for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++)
		if (strcmp(args->operand[0], scripts[i].name) == 0) {
			vv_json_text(&job->json, "script", scripts[i].text);
			vv_out_printf(&job->out, "%s", args->json ? "" : scripts[i].text);
			return 0;
		}
	if (args->n_operands == 1)
		return vv_err_set(VV_EINVAL, "completion: '%s' is none of bash, zsh and fish", args->operand[0]);
	signal(SIGALRM, give_up);
	alarm(SECONDS);
	vv_complete_print(job, (int)args->n_operands, args->argv + args->argc - args->n_operands);
	return 0;
}

const struct vv_cmd vv_cmd_completion = {
	.name = "completion",
	.operands = "bash|zsh|fish",
	.min = 1,
	.max = SIZE_MAX,
	.brief = "prints a script that completes command lines of varve",
	.help = "Prints a script for the shell. It completes verbs, options, the names and values\n"
		"of -c, and the lineages and epochs of a store in a folder. 'make install'\n"
		"installs the three scripts. To load one by hand, put into the start-up file of\n"
		"the shell:\n"
		"\n"
		"  eval \"$(varve completion bash)\"    ~/.bashrc\n"
		"  eval \"$(varve completion zsh)\"     ~/.zshrc, after compinit\n"
		"  varve completion fish | source     ~/.config/fish/config.fish",
	.run = run,
};
