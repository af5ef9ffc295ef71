#!/usr/bin/env python3
"""Runs a command on a terminal of its own and draws what it shows as an SVG that plays it.

record.py --columns N --output FILE COMMAND SHOWN: COMMAND is run by sh, SHOWN stands behind the prompt. What is drawn is
what the command printed, when it printed it. Without animation (or when the reader wants none) the last screen is shown.
"""

import argparse
import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import time
from xml.sax.saxutils import escape

ROWS = 40
# Seconds: screens that follow each other faster are one; how long the last one stays.
FRAME = 0.08
REST = 4.0
# Pixels.
WIDTH, HEIGHT, MARGIN, BAR = 8.43, 20, 16, 34

BACKGROUND, TEXT = "#0d1117", "#e6edf3"
COLOURS = ["#484f58", "#ff7b72", "#3fb950", "#d29922", "#58a6ff", "#bc8cff", "#39c5cf", "#b1bac4",
           "#6e7681", "#ffa198", "#56d364", "#e3b341", "#79c0ff", "#d2a8ff", "#56d4dd", "#ffffff"]

CONTROL = re.compile(r"\x1b\[([?0-9;]*)([@-~])|\x1b[()].|\x1b[=>78]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|(.)", re.S)


class Screen:
    """As much of a terminal as programs that redraw a few lines use."""

    def __init__(self, columns):
        self.columns = columns
        self.lines = [[]]
        self.row = self.column = 0
        self.style = (None, False, False)

    def feed(self, text):
        for parameters, final, character in CONTROL.findall(text):
            if character:
                self.put(character)
            elif final:
                self.control(parameters, final)

    def line(self):
        while len(self.lines) <= self.row:
            self.lines.append([])
        return self.lines[self.row]

    def put(self, character):
        if character == "\n":
            self.row += 1
            self.line()
        elif character == "\r":
            self.column = 0
        elif character >= " " and self.column < self.columns:
            line = self.line()
            while len(line) <= self.column:
                line.append((" ", (None, False, False)))
            line[self.column] = (character, self.style)
            self.column += 1

    def control(self, parameters, final):
        numbers = [int(n) if n.isdigit() else 0 for n in parameters.lstrip("?").split(";")]
        first = max(numbers[0], 1)
        if final == "A":
            self.row = max(0, self.row - first)
        elif final == "B":
            self.row += first
        elif final == "C":
            self.column += first
        elif final == "D":
            self.column = max(0, self.column - first)
        elif final == "G":
            self.column = first - 1
        elif final == "H":
            self.row, self.column = first - 1, max(numbers[-1], 1) - 1
        elif final == "J":
            del self.line()[self.column:]
            del self.lines[self.row + 1:]
        elif final == "K":
            del self.line()[self.column:]
        elif final == "m":
            self.colour(numbers)

    def colour(self, numbers):
        colour, bold, dim = self.style
        numbers = list(numbers)
        while numbers:
            n = numbers.pop(0)
            if n == 0:
                colour, bold, dim = None, False, False
            elif n == 1:
                bold = True
            elif n == 2:
                dim = True
            elif n == 22:
                bold = dim = False
            elif 30 <= n <= 37:
                colour = COLOURS[n - 30]
            elif 90 <= n <= 97:
                colour = COLOURS[n - 82]
            elif n == 39:
                colour = None
            elif n == 38 and numbers[:1] == [5] and len(numbers) > 1 and numbers[1] < 16:
                colour = COLOURS[numbers[1]]
                del numbers[:2]
        self.style = (colour, bold, dim)

    def shown(self):
        return [tuple(line) for line in self.lines]


def play(command, columns):
    """The screens of a command and when each was complete."""
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, columns, 0, 0))
    environment = dict(os.environ, TERM="xterm-256color", COLUMNS=str(columns))
    environment.pop("NO_COLOR", None)
    begin = time.monotonic()
    process = subprocess.Popen(["sh", "-c", command], stdin=child, stdout=child, stderr=child, env=environment,
                               start_new_session=True)
    os.close(child)
    screen, frames, rest = Screen(columns), [], b""
    while True:
        try:
            data = os.read(parent, 65536)
        except OSError:
            break
        if not data:
            break
        rest += data
        # A character may be cut in two.
        text = rest.decode(errors="ignore")
        rest = rest[len(text.encode()):]
        screen.feed(text)
        now = time.monotonic() - begin
        if frames and now - frames[-1][0] < FRAME:
            frames[-1] = (frames[-1][0], screen.shown())
        else:
            frames.append((now, screen.shown()))
    if process.wait() != 0:
        raise SystemExit(f"`{command}` ended with {process.returncode}")
    return frames


def drawn(line, y):
    """A line as SVG: one span for each run of equal style."""
    spans, start = [], 0
    while start < len(line):
        style, end = line[start][1], start
        while end < len(line) and line[end][1] == style:
            end += 1
        text = "".join(character for character, _ in line[start:end])
        if text.strip():
            colour, bold, dim = style
            looks = (f' fill="{colour}"' if colour else "") + (' font-weight="bold"' if bold else "")
            looks += ' opacity="0.65"' if dim else ""
            x = MARGIN + start * WIDTH
            spans.append(f'<tspan x="{x:.1f}"{looks}>{escape(text)}</tspan>')
        start = end
    return f'<text y="{y}" xml:space="preserve">{"".join(spans)}</text>' if spans else ""


def svg(frames, shown, columns):
    prompt = ("$ " + shown)
    rows = 1 + max(len([line for line in lines]) for _, lines in frames)
    width, height = columns * WIDTH + 2 * MARGIN, rows * HEIGHT + BAR + MARGIN
    total = frames[-1][0] + REST
    rules, groups = [], []
    for index, (begin, lines) in enumerate(frames):
        is_last = index == len(frames) - 1
        end = total if is_last else frames[index + 1][0]
        name = f"f{index}"
        rules.append(f"@keyframes {name}{{0%{{visibility:hidden}}{begin / total:.2%}{{visibility:visible}}"
                     + ("" if is_last else f"{end / total:.2%}{{visibility:hidden}}") + "}")
        rules.append(f"#{name}{{visibility:{'visible' if is_last else 'hidden'};"
                     f"animation:{name} {total:.2f}s step-end infinite}}")
        body = "".join(drawn(line, BAR + (row + 2) * HEIGHT) for row, line in enumerate(lines))
        groups.append(f'<g id="{name}">{body}</g>')
    dots = "".join(f'<circle cx="{MARGIN + 6 + 20 * i}" cy="18" r="6" fill="{colour}"/>'
                   for i, colour in enumerate(["#ff5f56", "#ffbd2e", "#27c93f"]))
    first = drawn([(c, (COLOURS[8] if i == 0 else None, i > 1, False)) for i, c in enumerate(prompt)], BAR + HEIGHT)
    style = ("text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:" + TEXT + "}"
             + "".join(rules) + "@media(prefers-reduced-motion:reduce){g{animation:none!important}}")
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
            f'height="{height:.0f}" role="img"><title>{escape(shown)}</title><style>{style}</style>'
            f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>{dots}{first}\n' + "\n".join(groups) + "\n</svg>\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--columns", type=int, required=True)
    parser.add_argument("--output", required=True)
    parser.add_argument("command")
    parser.add_argument("shown")
    given = parser.parse_args()
    frames = play(given.command, given.columns)
    with open(given.output, "w", encoding="utf-8") as file:
        file.write(svg(frames, given.shown, given.columns))


if __name__ == "__main__":
    main()
