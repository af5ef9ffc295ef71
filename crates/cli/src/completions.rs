//! `taskledger completions`

use super::CliError;
use super::complete::VARIABLE;
use super::output::Output;
use clap_complete::Shell;
use clap_complete::env::Shells;
use std::process::ExitCode;

/// Print a completion script for a shell
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  taskledger completions bash > ~/.local/share/bash-completion/completions/taskledger
  taskledger completions zsh > ~/.zfunc/_taskledger
  taskledger completions fish > ~/.config/fish/completions/taskledger.fish

The script asks `taskledger` for commands, options, ids, methods and contexts. Create it again after an
upgrade. Ids come from the server of the command; if it does not answer within 0.3 s, none are offered.")]
pub struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// What the file of a completion that zsh has loaded by its name does at once.
const ZSH_FIRST: &str = "\nif [[ \"${funcstack[1]}\" = _taskledger ]]; then\n    \
                         _clap_dynamic_completer_taskledger \"$@\"\nfi\n";

/// What bash does before and after it asks: it splits words at the `:`, `=` and `@` of COMP_WORDBREAKS too, and
/// replaces no more than the last part of what it has split.
const BASH_JOINS: &str = r#"
# Bash splits words at the `:`, `=` and `@` of COMP_WORDBREAKS too. Parts that stand together in the line are joined
# again. Of a candidate for the whole word, bash is given what replaces its part.
_taskledger() {
    local rest="$COMP_LINE" part trimmed glued breaks=0 place at=-1 lead="" i joined=()
    for ((i = 0; i < ${#COMP_WORDS[@]}; i++)); do
        part="${COMP_WORDS[i]}"
        trimmed="${rest#"${rest%%[![:space:]]*}"}"
        glued=0
        if [[ -z $part ]]; then
            breaks=0
        else
            place=$((${#COMP_LINE} - ${#trimmed}))
            if [[ $trimmed == "$rest" && i -gt 0 && ($breaks -eq 1 || $part != *[!:=@]*) ]]; then
                glued=1
            fi
            [[ $part == *[!:=@]* ]] && breaks=0 || breaks=1
            rest="${trimmed#"$part"}"
            # Of the word at the cursor, what is before it.
            [[ i -eq COMP_CWORD ]] && part="${part:0:COMP_POINT - place}"
        fi
        if [[ glued -eq 0 ]]; then
            joined+=("$part")
        elif [[ at -lt 0 || at -ne ${#joined[@]}-1 ]]; then
            joined[${#joined[@]}-1]+="$part"
        fi
        [[ i -eq COMP_CWORD ]] && at=$((${#joined[@]} - 1))
    done
    local word="${joined[at]}"
    if [[ -n $2 && $word == *"$2" ]]; then
        lead="${word%"$2"}"
    elif [[ -z $2 ]]; then
        lead="$word"
    fi
    local COMP_WORDS=("${joined[@]}") COMP_CWORD=$at
    _clap_complete_taskledger "$1" "$word" "$3"
    COMPREPLY=("${COMPREPLY[@]#"$lead"}")
}
complete -o nospace -o bashdefault -o nosort -F _taskledger taskledger 2> /dev/null ||
    complete -o nospace -o bashdefault -F _taskledger taskledger
"#;

/// Writes the script.
pub fn completions(args: &Args, out: &mut Output) -> Result<ExitCode, CliError> {
    const PROGRAM: &str = "taskledger";
    let shells = Shells::builtins();
    let name = args.shell.to_string();
    let completer = shells.completer(&name);
    let completer =
        completer.ok_or_else(|| CliError::Usage(format!("there is no completion for `{name}`")))?;
    let mut script = Vec::new();
    completer.write_registration(VARIABLE, PROGRAM, PROGRAM, PROGRAM, &mut script)?;
    if args.shell == Shell::Zsh {
        // The first time, zsh runs the file as the function that completes.
        script.extend_from_slice(ZSH_FIRST.as_bytes());
    } else if args.shell == Shell::Bash {
        script.extend_from_slice(BASH_JOINS.as_bytes());
    }
    out.bytes(&script)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::BASH_JOINS;
    use std::process::Command;

    /// What the program is asked for, when bash completes a word that it has split so at the cursor `|`, and what bash
    /// makes of these candidates.
    fn asked(line: &str, split: &[&str], (at, replaced): (usize, &str), found: &str) -> String {
        let point = line.find('|').expect("a cursor");
        let script = format!(
            r#"_clap_complete_taskledger() {{
                printf '%s>' "$COMP_CWORD" "${{COMP_WORDS[@]}}"
                COMPREPLY=({found})
            }}
            {BASH_JOINS}
            COMP_LINE="$1" COMP_POINT=$2 COMP_CWORD=$3 COMP_WORDS=("${{@:5}}")
            _taskledger taskledger "$4" ''
            printf ' %s' "${{COMPREPLY[@]}}""#
        );
        let output = Command::new("bash")
            .args(["--norc", "-c", &script, "bash", &line.replace('|', "")])
            .args([&point.to_string(), &at.to_string(), replaced])
            .args(split)
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{line}");
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn words_that_bash_has_split_are_joined_again() {
        let url = ["t", "--url", "http", ":", "//h", ":", "1", "get", "0f"];
        assert_eq!(
            asked("t --url http://h:1 get 0f|", &url, (8, "0f"), "0f8f 0f9f"),
            "4>t>--url>http://h:1>get>0f> 0f8f 0f9f"
        );
        // A URL behind the cursor, and one that the cursor is in.
        let behind = ["t", "get", "0f8f", "--url", "http", ":", "//h"];
        assert_eq!(
            asked("t get 0f|8f --url http://h", &behind, (2, "0f"), "0f8f"),
            "2>t>get>0f>--url>http://h> 0f8f"
        );
        let within = ["t", "--url", "http", ":", "//h", "get"];
        assert_eq!(
            asked("t --url http:/|/h get", &within, (4, "/"), "http://h"),
            "2>t>--url>http:/>get> //h"
        );
        let empty = ["t", "get", "", "--url", "http", ":", "//h"];
        assert_eq!(
            asked("t get | --url http://h", &empty, (2, ""), "@last"),
            "2>t>get>>--url>http://h> @last"
        );
    }

    #[test]
    fn bash_gets_what_replaces_its_part_of_the_word() {
        let given = ["t", "--context", "=", "pr"];
        assert_eq!(
            asked("t --context=pr|", &given, (3, "pr"), "--context=prod"),
            "1>t>--context=pr> prod"
        );
        assert_eq!(
            asked("t --context=|", &given[..3], (2, ""), "--context=prod"),
            "1>t>--context=> prod"
        );
        // Bash leaves the `@` in what is replaced.
        assert_eq!(
            asked("t get @la|", &["t", "get", "@", "la"], (3, "@la"), "@last"),
            "2>t>get>@la> @last"
        );
        assert_eq!(
            asked("t a:b:|", &["t", "a", ":", "b", ":"], (4, ""), "a:b:c"),
            "1>t>a:b:> c"
        );
    }
}
