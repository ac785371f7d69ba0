#include "cli/line_editor.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

#include <histedit.h>
#include <unistd.h>

#include "cli/answer_printer.h"
#include "cli/entry.h"
#include "cli/key_source.h"
#include "cli/wide_text.h"

namespace openelm::cli {
namespace {

constexpr const wchar_t* kPasteEnd = L"\033[201~";
// Sequences that no keyboard sends, for keys that the program presses.
constexpr const wchar_t* kAccept = L"\033[9001~";
constexpr const wchar_t* kGoToEnd = L"\033[9002~";
constexpr const wchar_t* kPropose = L"\033[9003~";

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
struct EditorCloser {
  void operator()(EditLine* editor) const { ::el_end(editor); }
};
struct HistoryCloser {
  void operator()(HistoryW* history) const { ::history_wend(history); }
};

wchar_t* prompt_of(EditLine*) {
  static std::array<wchar_t, 3> prompt{L'>', L' ', L'\0'};  // libedit wants it writable
  return prompt.data();
}

std::string common_start(const std::vector<std::string>& words) {
  std::string start = words.front();
  for (const std::string& word : words) {
    const auto end = std::mismatch(start.begin(), start.end(), word.begin(), word.end()).first;
    start.erase(end, start.end());
  }
  return start;
}

}  // namespace

struct LineEditor::Impl {
  Impl(TerminalModes& modes_in, HistoryFile history_in, Complete complete_in)
      : modes(modes_in),
        keys(modes_in),
        history(std::move(history_in)),
        complete(std::move(complete_in)) {}

  bool open();
  void bind();
  void remember(const std::string& entry);
  int next_key(wchar_t* key);

  std::wstring_view text() const;
  std::size_t cursor() const;
  void move_to(std::size_t position);
  void erase_before(std::size_t count) { el_wdeletestr(editor.get(), static_cast<int>(count)); }
  void insert(const std::wstring& more) { ::el_winsertstr(editor.get(), more.c_str()); }
  unsigned char recall(std::size_t position);

  // What keys do. Each returns what libedit must draw.
  unsigned char enter();
  unsigned char new_line();
  unsigned char paste();
  unsigned char left();
  unsigned char right();
  unsigned char backspace();
  unsigned char erase_or_leave();
  unsigned char up();
  unsigned char down();
  unsigned char tab();
  unsigned char go_to_end();
  unsigned char propose();

  /// One of them as libedit calls it.
  template <unsigned char (Impl::*action)()>
  static unsigned char call(EditLine* editor, wint_t) {
    return (of(editor).*action)();
  }
  static int read_key(EditLine* editor, wchar_t* key) { return of(editor).next_key(key); }
  static Impl& of(EditLine* editor) {
    void* self = nullptr;
    ::el_wget(editor, EL_CLIENTDATA, &self);
    return *static_cast<Impl*>(self);
  }

  TerminalModes& modes;
  KeySource keys;
  HistoryFile history;
  Complete complete;
  std::unique_ptr<std::FILE, FileCloser> screen;
  std::unique_ptr<HistoryW, HistoryCloser> searched;  // the history again, for libedit's search
  std::unique_ptr<EditLine, EditorCloser> editor;
  const std::atomic<bool>* interrupt = nullptr;
  Result outcome = Result::entry;
  bool leaving = false;  // interrupted: the cursor is on its way to the end
  std::wstring proposal;
  std::size_t recalled = 0;  // position in the history; its size: the draft
  std::wstring draft;
};

bool LineEditor::Impl::open() {
  // libedit flushes where it must; unbuffered, each character would be a system call.
  const int descriptor = ::dup(STDERR_FILENO);
  screen.reset(descriptor < 0 ? nullptr : ::fdopen(descriptor, "w"));
  searched.reset(::history_winit());
  if (!screen || !searched) return false;
  editor.reset(::el_init("openelm", stdin, screen.get(), screen.get()));
  if (!editor) return false;
  HistEventW event;
  ::history_w(searched.get(), &event, H_SETSIZE, 2000);
  for (const std::string& entry : history.entries()) {
    ::history_w(searched.get(), &event, H_ENTER, to_wide(entry).c_str());
  }
  EditLine* el = editor.get();
  ::el_wset(el, EL_CLIENTDATA, static_cast<void*>(this));
  ::el_wset(el, EL_PROMPT, &prompt_of);
  ::el_wset(el, EL_EDITOR, L"emacs");
  ::el_wset(el, EL_HIST, &::history_w, searched.get());
  ::el_wset(el, EL_GETCFN, &Impl::read_key);
  bind();
  return true;
}

void LineEditor::Impl::bind() {
  using Function = unsigned char (*)(EditLine*, wint_t);
  struct Binding {
    const wchar_t* name;
    Function function;  // null: one of libedit's own
    std::vector<const wchar_t*> keys;
  };
  const std::vector<Binding> bindings{
      {L"openelm-enter", &call<&Impl::enter>, {L"\r", L"\n"}},
      {L"openelm-new-line", &call<&Impl::new_line>, {L"\033\r", L"\033\n"}},
      {L"openelm-paste", &call<&Impl::paste>, {L"\033[200~"}},
      {L"openelm-left", &call<&Impl::left>, {L"\002", L"\033[D", L"\033OD"}},
      {L"openelm-right", &call<&Impl::right>, {L"\006", L"\033[C", L"\033OC"}},
      {L"openelm-backspace", &call<&Impl::backspace>, {L"\177", L"\010"}},
      {L"openelm-erase", &call<&Impl::erase_or_leave>, {L"\004", L"\033[3~"}},
      {L"openelm-up", &call<&Impl::up>, {L"\020", L"\033[A", L"\033OA"}},
      {L"openelm-down", &call<&Impl::down>, {L"\016", L"\033[B", L"\033OB"}},
      {L"openelm-tab", &call<&Impl::tab>, {L"\t"}},
      {L"openelm-end", &call<&Impl::go_to_end>, {kGoToEnd}},
      {L"openelm-propose", &call<&Impl::propose>, {kPropose}},
      {L"ed-newline", nullptr, {kAccept}},
      {L"em-inc-search-prev", nullptr, {L"\022"}},
      {L"ed-delete-prev-word", nullptr, {L"\027", L"\033\177"}},
      {L"ed-prev-word", nullptr, {L"\033[1;5D", L"\033[1;3D", L"\033b"}},
      {L"em-next-word", nullptr, {L"\033[1;5C", L"\033[1;3C", L"\033f"}},
      {L"ed-move-to-beg", nullptr, {L"\033[H", L"\033OH", L"\033[1~"}},
      {L"ed-move-to-end", nullptr, {L"\033[F", L"\033OF", L"\033[4~"}},
  };
  EditLine* el = editor.get();
  for (const Binding& binding : bindings) {
    if (binding.function != nullptr) {
      ::el_wset(el, EL_ADDFN, binding.name, L"openelm", binding.function);
    }
    for (const wchar_t* key : binding.keys) {
      ::el_wset(el, EL_BIND, key, binding.name, nullptr);
    }
  }
}

void LineEditor::Impl::remember(const std::string& entry) {
  if (trim(entry).empty()) return;
  history.add(entry);
  HistEventW event;
  ::history_w(searched.get(), &event, H_ENTER, to_wide(entry).c_str());
}

/// libedit's question for a character: 1 for one, 0 at the end of the input, -1 to give up.
int LineEditor::Impl::next_key(wchar_t* key) {
  while (true) {
    const std::atomic<bool> ignore{false};
    switch (keys.next(*key, leaving ? ignore : *interrupt)) {
      case KeySource::Event::key:
        if (leaving && *key == L'\0') return -1;
        return 1;
      case KeySource::Event::end:
        outcome = Result::end;
        return 0;
      case KeySource::Event::interrupted:
        // What is printed next belongs below the text, so the cursor goes to its end first.
        outcome = Result::interrupted;
        leaving = true;
        keys.clear();
        keys.press(kGoToEnd + std::wstring(1, L'\0'));
        break;
      case KeySource::Event::changed:
        ::el_resize(editor.get());
        ::el_wset(editor.get(), EL_REFRESH);
        break;
    }
  }
}

std::wstring_view LineEditor::Impl::text() const {
  const LineInfoW* line = ::el_wline(editor.get());
  return {line->buffer, static_cast<std::size_t>(line->lastchar - line->buffer)};
}

std::size_t LineEditor::Impl::cursor() const {
  const LineInfoW* line = ::el_wline(editor.get());
  return static_cast<std::size_t>(line->cursor - line->buffer);
}

void LineEditor::Impl::move_to(std::size_t position) {
  const auto distance =
      static_cast<std::ptrdiff_t>(position) - static_cast<std::ptrdiff_t>(cursor());
  ::el_cursor(editor.get(), static_cast<int>(distance));
}

unsigned char LineEditor::Impl::enter() {
  std::string entry = to_utf8(text());
  if (!is_unfinished(entry)) {
    keys.press(kAccept);
    return CC_NORM;
  }
  move_to(text().size());
  begin_next_line(entry);
  // Either a line end is added, or it takes the backslash's place.
  if (to_wide(entry).size() == text().size()) erase_before(1);
  return new_line();
}

unsigned char LineEditor::Impl::new_line() {
  insert(L"\n");
  return CC_REFRESH;
}

unsigned char LineEditor::Impl::paste() {
  const std::wstring_view end = kPasteEnd;
  std::wstring pasted;
  wchar_t key = 0;
  while (!pasted.ends_with(end)) {
    const KeySource::Event event = keys.next(key, *interrupt);
    if (event == KeySource::Event::changed) continue;
    if (event != KeySource::Event::key) return CC_REFRESH;
    pasted += key;
  }
  pasted.resize(pasted.size() - end.size());
  std::wstring clean;
  for (std::size_t i = 0; i < pasted.size(); ++i) {
    const wchar_t c = pasted[i];
    const bool line_end = c == L'\r' || c == L'\n';
    // CR and LF in either order are one line end: the terminal may have changed one to the other.
    const bool pair = line_end && i + 1 < pasted.size() && pasted[i + 1] != c &&
                      (pasted[i + 1] == L'\r' || pasted[i + 1] == L'\n');
    if (line_end) {
      clean += L'\n';
    } else if (c == L'\t' || (c >= 0x20 && c != 0x7F)) {
      clean += c;
    }
    if (pair) ++i;
  }
  insert(clean);
  return CC_REFRESH;
}

unsigned char LineEditor::Impl::left() {
  move_to(previous_boundary(text(), cursor()));
  return CC_CURSOR;
}

unsigned char LineEditor::Impl::right() {
  move_to(next_boundary(text(), cursor()));
  return CC_CURSOR;
}

unsigned char LineEditor::Impl::backspace() {
  const std::size_t at = cursor();
  if (at == 0) return CC_NORM;
  erase_before(at - previous_boundary(text(), at));
  return CC_REFRESH;
}

unsigned char LineEditor::Impl::erase_or_leave() {
  if (text().empty()) {
    outcome = Result::end;
    return CC_EOF;
  }
  const std::size_t at = cursor();
  const std::size_t end = next_boundary(text(), at);
  if (end == at) return CC_NORM;
  move_to(end);
  erase_before(end - at);
  return CC_REFRESH;
}

/// Shows an entry of the history in the place of what stands there.
unsigned char LineEditor::Impl::recall(std::size_t position) {
  const std::vector<std::string>& entries = history.entries();
  if (recalled == entries.size()) draft = text();
  recalled = position;
  move_to(text().size());
  erase_before(text().size());
  insert(position == entries.size() ? draft : to_wide(entries[position]));
  return CC_REFRESH;
}

unsigned char LineEditor::Impl::up() {
  const std::wstring_view before = text().substr(0, cursor());
  const std::size_t line = before.rfind(L'\n');
  if (line == std::wstring_view::npos) {
    return recalled == 0 ? static_cast<unsigned char>(CC_NORM) : recall(recalled - 1);
  }
  const std::size_t column = before.size() - line - 1;
  const std::size_t above = before.substr(0, line).rfind(L'\n');
  const std::size_t start = above == std::wstring_view::npos ? 0 : above + 1;
  move_to(std::min(start + column, line));
  return CC_CURSOR;
}

unsigned char LineEditor::Impl::down() {
  const std::size_t at = cursor();
  const std::size_t line_end = text().find(L'\n', at);
  if (line_end == std::wstring_view::npos) {
    const bool newest = recalled == history.entries().size();
    return newest ? static_cast<unsigned char>(CC_NORM) : recall(recalled + 1);
  }
  const std::size_t line = at == 0 ? std::wstring_view::npos : text().rfind(L'\n', at - 1);
  const std::size_t column = line == std::wstring_view::npos ? at : at - line - 1;
  const std::size_t below_end = std::min(text().find(L'\n', line_end + 1), text().size());
  move_to(std::min(line_end + 1 + column, below_end));
  return CC_CURSOR;
}

unsigned char LineEditor::Impl::tab() {
  const std::string before = to_utf8(text().substr(0, cursor()));
  const Completions found = complete(before);
  if (found.candidates.empty()) {
    insert(before.starts_with('/') ? L"" : L"\t");
    return CC_REFRESH;
  }
  const std::string typed = before.substr(found.begin);
  std::string completed = common_start(found.candidates);
  if (found.candidates.size() == 1 && !completed.ends_with('/')) completed += ' ';
  if (completed.size() > typed.size()) {
    erase_before(to_wide(typed).size());
    insert(to_wide(completed));
    return CC_REFRESH;
  }
  std::string list = "\n";
  for (const std::string& candidate : found.candidates) list += candidate + "  ";
  std::fputs((list + "\n").c_str(), screen.get());
  return CC_REDISPLAY;
}

unsigned char LineEditor::Impl::go_to_end() {
  move_to(text().size());
  return CC_CURSOR;
}

unsigned char LineEditor::Impl::propose() {
  insert(proposal);
  return CC_REFRESH;
}

LineEditor::LineEditor(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
LineEditor::~LineEditor() = default;

std::unique_ptr<LineEditor> LineEditor::open(TerminalModes& modes, HistoryFile history,
                                             Complete complete) {
  const char* term = std::getenv("TERM");
  const bool capable = term != nullptr && *term != '\0' && std::string_view(term) != "dumb" &&
                       ::isatty(STDIN_FILENO) == 1 && ::isatty(STDERR_FILENO) == 1;
  if (!capable || !use_utf8_characters()) return nullptr;
  auto impl = std::make_unique<Impl>(modes, std::move(history), std::move(complete));
  if (!impl->open()) return nullptr;
  modes.make_quiet();
  return std::unique_ptr<LineEditor>(new LineEditor(std::move(impl)));
}

EntryReader::Result LineEditor::read(std::string& entry, const std::string& proposal,
                                     const std::atomic<bool>& interrupt) {
  Impl& s = *impl_;
  s.interrupt = &interrupt;
  s.outcome = Result::entry;
  s.leaving = false;
  s.recalled = s.history.entries().size();
  s.proposal = to_wide(proposal);
  if (!proposal.empty()) s.keys.press(kPropose);
  s.modes.mark_pastes(true);
  int length = 0;
  const wchar_t* line = ::el_wgets(s.editor.get(), &length);
  s.modes.mark_pastes(false);
  s.modes.make_quiet();
  if (line == nullptr || length <= 0) {
    std::fputc('\n', s.screen.get());
    std::fflush(s.screen.get());
    return s.outcome == Result::entry ? Result::end : s.outcome;
  }
  const auto characters = static_cast<std::size_t>(length);
  entry = to_utf8({line, characters - 1});  // without the line end
  s.remember(entry);
  entry = entry_text(entry);
  return Result::entry;
}

}  // namespace openelm::cli
